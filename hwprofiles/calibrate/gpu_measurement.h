// What measuring a GPU gave: plain figures, no model yet. Times in seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "hwprofiles/calibrate/spread.h"
#include "hwprofiles/gpu_profile.h"

namespace spillway::hwprofiles {

struct GemmPoint {
  Precision precision = Precision::bf16;
  std::int64_t m = 0, n = 0, k = 0;
  Spread seconds;
};

// A kernel of training steps that is no matrix product, one of calibrate's own.
struct KernelPoint {
  KernelKind kind = KernelKind::elementwise;
  double work = 0;  // attention: flops; else bytes, each operand read once and each result written once
  Spread seconds;
};

// A kernel bound by memory, or a copy.
struct SizedTime {
  std::string what;  // kernels: "copy", "read", "write", "norm", ...; copies: "to device", "to host"
  Bytes bytes;       // moved in all
  bool pinned = true;
  Spread seconds;
};

struct GpuMeasurement {
  std::string name, driver;  // "NVIDIA H200"; version of the driver, empty where unknown
  Bytes memory, context;     // of the device; taken before the first tensor
  std::int64_t sm_count = 0;
  Bytes l2_cache;
  Spread launch_call, launch_to_start, kernel_gap;
  std::int64_t launch_queue_depth = 0;  // 0: the host never had to wait
  Spread event_record_call, event_wait_call, event_gap;
  double two_stream_speedup = 0;  // 0: not measured
  Spread malloc_cost, free_cost, chunk_create, chunk_map, chunk_unmap;
  std::vector<GemmPoint> products;
  std::vector<SizedTime> memory_bound;  // kernels
  std::vector<SizedTime> copies;        // one direction alone
  Spread duplex_bytes_per_second;       // pinned, both directions together
  std::vector<KernelPoint> kernels;
  // A kernel bound by memory and copies both ways, each alone and both together. Bytes a second.
  double kernel_rate_alone = 0, kernel_rate_beside_copies = 0, copy_rate_alone = 0, copy_rate_beside_kernels = 0;
  std::int64_t copy_engines_per_direction = 1;
  unsigned sm_clock_mhz = 0, milliwatts = 0;  // under load; 0 unknown
  std::string no_activity_records;            // why kernels were timed by events; empty: they were not
  std::vector<std::string> left_out;          // parts cut short by the time they may take
  double seconds = 0;
};

}  // namespace spillway::hwprofiles
