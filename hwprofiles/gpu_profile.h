// One GPU model: what its memory, arithmetic, copy engines and launch path can do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hwprofiles/curve.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

// Arithmetic of a kernel's inner products. fp32 is the vector unit, tf32 the tensor unit on fp32 data.
enum class Precision { fp64, fp32, tf32, bf16, fp16, fp8, fp4, int8 };
inline constexpr std::size_t precision_count = 8;
std::string_view precision_name(Precision precision);

// Fraction of the dense peak a matrix product reaches against its flops (2mnk), for one class of shapes.
struct GemmEfficiency {
  Precision precision = Precision::bf16;
  // Class of the smallest of m, n, k: the curve holds from here up to the next class of the same precision.
  std::int64_t smallest_side = 1;
  Curve curve;
  Origin origin;
};

// Kernels of a training step that are not matrix products.
enum class KernelKind : std::uint8_t {
  elementwise,
  norm_forward,
  norm_backward,
  softmax,
  cross_entropy,
  gather,
  optimizer,
  attention_forward,
  attention_backward
};
inline constexpr std::size_t kernel_kind_count = 9;
std::string_view kernel_kind_name(KernelKind kind);

// Rate of kernels of one kind, the fixed part of their time included. Attention: share of the dense bf16 peak against
// flops (those under a causal mask alone); all others: share of memory_bandwidth against bytes moved.
struct KernelEfficiency {
  KernelKind kind = KernelKind::elementwise;
  Curve curve;
  Origin origin;
};

// Operators that a scale of operator times may apply to.
enum class ScaledOperator : std::uint8_t {
  product,
  memory_bound,  // all kernels bound by memory
  attention_forward,
  attention_backward,
  norm_forward,
  norm_backward,
  cross_entropy,
  optimizer
};
inline constexpr std::size_t scaled_operator_count = 8;
std::string_view scaled_operator_name(ScaledOperator of);

// Factors on what fitted operator times (models/cost/operator_times.h) say of a GPU of this model, measured on this
// very one.
struct OperatorScale {
  ScaledOperator of = ScaledOperator::product;
  Precision precision = Precision::bf16;  // of products
  Sourced<double> compute, memory;        // on the rate of arithmetic, on that of device memory
  Sourced<double> fixed;                  // on fixed times
};

// Products of one m and n: time over that of the fitted operator times, against k. A library's tiles for such a result
// are the same for all k.
struct ProductLine {
  Precision precision = Precision::bf16;
  std::int64_t m = 1, n = 1;
  Curve curve;
  Origin origin;
};

// Three-constant roofline: time = latency + max(flops / (compute * peak), bytes / (memory * bandwidth)).
// Fitted to products with sides of at least 1024 in NVIDIA's aiconfigurator tables; each profile names its source.
struct RooflineFit {
  Sourced<double> compute_efficiency;  // (0, 1]
  Sourced<double> memory_efficiency;   // (0, 1]
  Sourced<Picos> latency;
};

struct GpuProfile {
  std::string name, title, vendor, architecture, form_factor, note;
  // Bundled profile of the same model with the fitted operator times that hold for this one; empty: its own name.
  std::string operator_times_of;
  // Host profile that one of them alone is in; empty: the library's plain server.
  std::string host;

  Sourced<Bytes> memory;
  Sourced<Rate> memory_bandwidth;
  // Dense, in operations a second; absent where the source gives none.
  std::array<Maybe<double>, precision_count> peak_flops_per_second;
  // Best product measured on real hardware, when someone measured it (a tighter ceiling than the peak).
  std::array<Maybe<double>, precision_count> achieved_flops_per_second;
  Maybe<std::int64_t> sm_count;
  Maybe<Bytes> l2_cache;

  Sourced<std::int64_t> pcie_generation, pcie_lanes;
  // 0: the driver lets no card of this kind read another's memory over PCIe. Absent: it does.
  Maybe<std::int64_t> peer_access;
  // Per direction, to all peers together (datasheets print the sum of both directions).
  Maybe<Rate> nvlink_bandwidth;
  // Chip-to-chip link to the CPU in place of PCIe (GH200, GB200), per direction.
  Maybe<Rate> cpu_link_bandwidth;

  // Large pinned copies, one direction alone; absent: PCIe rate x the host's payload efficiency.
  Maybe<Rate> host_to_device_bandwidth, device_to_host_bandwidth;
  // Both directions together; less than their sum where duplex is not free.
  Maybe<Rate> duplex_bandwidth;
  Sourced<double> pageable_copy_fraction;  // (0, 1]: rate of a pageable copy over a pinned one
  Sourced<Picos> copy_latency;             // fixed part of each copy
  Sourced<std::int64_t> copy_engines_per_direction;
  // HBM bytes charged per byte a copy moves while kernels run: >= 1.
  Sourced<double> hbm_contention_factor;
  // Share of memory_bandwidth that memory-bound kernels and copies reach together, (0, 1]: kernels slow down where they
  // want more between them. Absent: copies don't slow kernels.
  Maybe<double> shared_hbm_fraction;
  // Rate of copies to the host beside a kernel bound by memory, over their rate alone, (0, 1]. For people: the model's
  // copies share memory_bandwidth and their link.
  Maybe<double> copy_fraction_beside_kernels;

  Sourced<Picos> launch_call;                // the host is busy this long per launch
  Sourced<Picos> launch_to_start;            // from the end of that call to the start on an idle GPU
  Sourced<Picos> kernel_gap;                 // between two queued kernels of one stream
  Sourced<std::int64_t> launch_queue_depth;  // launches the host may run ahead, per stream
  Sourced<Picos> malloc_cost, free_cost;     // cudaMalloc, cudaFree (which also waits for the device)
  // Virtual memory management, per physical chunk of 2 to 20 MiB: cuMemCreate, cuMemMap with cuMemSetAccess, cuMemUnmap
  // with cuMemRelease.
  Maybe<Picos> chunk_create_cost, chunk_map_cost, chunk_unmap_cost;
  // cudaEventRecord and cudaStreamWaitEvent on the host; from the end of what an event marks to the start of what waits
  // for it on another stream. For people, as is two_stream_speedup. That is the work of two streams of kernels, each
  // filling half the multiprocessors, over that of one stream in the same time. It is about 1 (taking turns) to 2 (side
  // by side).
  Maybe<Picos> event_record_call, event_wait_call, event_gap;
  Maybe<double> two_stream_speedup;
  Sourced<Bytes> context_memory;  // taken by driver and libraries before the first tensor

  RooflineFit roofline;
  std::vector<GemmEfficiency> gemm_efficiency;      // by precision, then smallest_side, rising
  std::vector<KernelEfficiency> kernel_efficiency;  // by kind, each at most once
  std::vector<OperatorScale> operator_scales;       // at most one of an operator and precision
  std::vector<ProductLine> product_lines;           // at most one of m, n and precision
  Maybe<Curve> memory_bound_efficiency;             // bytes moved -> fraction of memory_bandwidth
  Maybe<Curve> copy_efficiency;                     // bytes of one copy -> fraction of the large-copy rate

  // Clock the multiprocessors are locked to (nvidia-smi -lgc), MHz; absent: as high as power allows.
  Maybe<double> locked_clock_mhz;

  Maybe<double> tdp_watts, idle_watts;
  // Board power the clock is held to (nvidia-smi -pl); absent: tdp_watts.
  Maybe<double> power_limit_watts;
  // Rate that a long bf16 product (sides of 8,192, repeated for a second) settles at on these very machines, under the
  // power, cooling and chips of a site. It goes before power_limit_watts.
  Maybe<double> sustained_flops_per_second;
  Maybe<double> loaded_clock_mhz,
      loaded_watts;  // of the multiprocessors and the board under matrix products; for people
  Maybe<double> price_usd, price_usd_per_hour;
};

// Dense peak for a precision, falling back to the next wider one a kernel would run in. The order is fp4 or int8 -> fp8
// -> bf16 -> fp16 -> tf32 -> fp32; fp16 tries bf16 next. Absent only when the profile has none of them.
Maybe<double> peak_flops_or_wider(const GpuProfile& gpu, Precision precision);
// Efficiency of a product of these sides from the table of its class. Falls back to the nearest
// precision with a table, then to the roofline's constant; `extrapolated` is set in both cases.
CurveValue gemm_efficiency(const GpuProfile& gpu, Precision precision, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace spillway::hwprofiles
