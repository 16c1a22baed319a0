// Results of measuring a GPU: single figures as they were measured, no model yet (models/fit makes profiles of them).
//
// Their file has a line of JSON for each, written as it is measured: first the device, then points, notes and parts
// that failed, at last the end. All that was measured before a program died is therefore there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/words.h"
#include "hwprofiles/gpu_profile.h"
#include "hwprofiles/spread.h"

namespace spillway::hwprofiles {

// Kind of a point. Its value is in seconds unless another unit is given.
enum class PointKind : std::uint8_t {
  launch_call,        // the host's, of one launch
  launch_to_start,    // from the end of that call to the kernel's start on an idle GPU
  kernel_gap,         // between two queued kernels of one stream
  launch_queue,       // launches that the host may run ahead, a count
  event_record_call,  // the host's
  event_wait_call,    // the host's, of cudaStreamWaitEvent
  event_gap,          // from the end of what an event marks to the start of what waits for it on another stream
  malloc_call,        // 20 MiB, as those that follow
  free_call,
  chunk_create,
  chunk_map,
  chunk_unmap,
  memory_kernel,              // `what`: copy, read or write; `bytes` moved in all
  product,                    // m, n, k, precision, `what`: the layout (tn, nn, nt)
  copy_to_device,             // `bytes`, `pinned`
  copy_to_host,               // `bytes`, `pinned`
  duplex_rate,                // bytes a second of pinned copies both ways at once
  kernel_rate_alone,          // bytes a second of a kernel bound by memory
  kernel_rate_beside_copies,  // the same while copies run both ways
  copy_rate_alone,            // bytes a second, both ways together
  copy_rate_beside_kernels,
  two_stream_speedup,  // of kernels that fill half the multiprocessors each: 1 to 2
  sustained_product,   // flops a second of a long bf16 product, settled; with clock and power
  sustained_window,    // the same of one interval of it, `at_seconds` after the load began
  operation            // a kernel of training: `what` is its ScaledOperator, `source` its library
};
inline constexpr std::size_t point_kind_count = 25;
std::string_view point_kind_name(PointKind kind);

// Libraries with the kernels that training runs. An operation's point tells something of a GPU's profile only if its
// kernel is one of theirs: a calibration's or a trainer's own attention runs at another rate than anyone's.
enum class KernelLibrary : std::uint8_t { pytorch, flash_attention, cudnn, cudnn_graph };
const Words& kernel_library_words();

struct GpuPoint {
  PointKind kind = PointKind::product;
  std::string what, source;
  Spread value;
  std::int64_t samples = 1;
  Precision precision = Precision::bf16;
  std::int64_t m = 0, n = 0, k = 0;  // product
  Bytes bytes;                       // of kernels: each operand read once and each result written once
  bool pinned = true;
  // Attention. Causal where `causal`.
  std::int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;
  bool causal = true;
  double clock_mhz = 0, watts = 0;  // 0: unknown
  double at_seconds = 0;
};

struct GpuIdentity {
  std::string name, driver;  // "NVIDIA H200"; version of the driver, empty where unknown
  Bytes memory, context;     // of the device; taken before the first tensor
  std::int64_t sm_count = 0;
  Bytes l2_cache;
  std::int64_t copy_engines_per_direction = 1;
  double power_limit_watts = 0;  // that the clock is held to; 0: unknown
};

struct FailedPart {
  std::string part, cause;
};

struct GpuMeasurement {
  GpuIdentity device;
  std::vector<GpuPoint> points;  // in the order measured
  std::vector<std::string> notes;
  std::vector<FailedPart> failed;
  bool is_whole = false;  // ended by itself
};

// The library of an operation's point, by the first word of its source ("cudnn-graph 9.19.0"); none: training runs none
// of its kernels.
std::optional<KernelLibrary> library_of(const GpuPoint& point);

// Appends points, notes and parts that failed. Whole only if both are. Throws InputError naming `file` where the added
// ones are of a device of another name or another number of multiprocessors.
void add_points(GpuMeasurement& measured, GpuMeasurement added, const std::string& file);

// The first of its kind; null where there is none.
const GpuPoint* find_point(const GpuMeasurement& measured, PointKind kind);

// Lines of JSON, each with its end.
std::string device_line(const GpuIdentity& device);
std::string point_line(const GpuPoint& point);
std::string note_line(const std::string& note);
std::string failed_line(const FailedPart& failed);
std::string end_line();

// A whole file; a last line without an end was being written when its program died, and is passed over. Throws
// InputError naming file and line.
GpuMeasurement read_gpu_points(const std::string& path);

// A file of points while it is being written: each line goes to the system at once. Throws InputError where the file is
// there already (measurements are not to be lost), or can't be written. Leaves no file where nothing was added.
class GpuPointFile {
 public:
  explicit GpuPointFile(std::string path);
  GpuPointFile(const GpuPointFile&) = delete;
  GpuPointFile& operator=(const GpuPointFile&) = delete;
  ~GpuPointFile();

  void add(const std::string& line);

 private:
  std::string path_;
  int file_ = -1;
  bool is_empty_ = true;
};

}  // namespace spillway::hwprofiles
