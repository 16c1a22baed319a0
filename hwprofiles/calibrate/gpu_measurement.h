// What measuring a GPU gave: plain figures, no model yet. Times in seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/spread.h"
#include "hwprofiles/gpu_profile.h"
#include "traces/base/units.h"

namespace spillway {

struct GemmPoint {
  Precision precision = Precision::bf16;
  std::int64_t m = 0, n = 0, k = 0;
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
  Spread malloc_cost, free_cost, chunk_create, chunk_map, chunk_unmap;
  std::vector<GemmPoint> products;
  std::vector<SizedTime> memory_bound;  // kernels
  std::vector<SizedTime> copies;        // one direction alone
  Spread duplex_bytes_per_second;       // pinned, both directions together
  // A kernel bound by memory, alone and beside copies to the host.
  double kernel_rate_alone = 0, kernel_rate_beside_copies = 0, copy_rate_beside_kernels = 0;  // bytes a second
  std::int64_t copy_engines_per_direction = 1;
  unsigned sm_clock_mhz = 0, milliwatts = 0;  // under load; 0 unknown
  double seconds = 0;
};

}  // namespace spillway
