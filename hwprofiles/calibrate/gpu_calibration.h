// Measures the GPU: what `spillway calibrate gpu` does. The work is done in the GPU module.
//
// Kernels and copies are timed by CUPTI's activity records where the system allows them, else by events, which add a
// few microseconds to what is short. Data is random; buffers rotate through twice the L2 cache, so that none is found
// there.
#pragma once

#include <cstddef>
#include <functional>

#include "hwprofiles/calibrate/gpu_measurement.h"

namespace spillway::hwprofiles {

// What each part may take, in seconds: quick, and four times that else. What does not fit is left out and told.
// Together with the step's kernels (validation/trainer/kernel_calibration.h) less than 90 s, less than six minutes.
struct GpuTimeBudget {
  double launches = 6, driver_calls = 4, memory = 10, products = 24, copies = 14, sharing = 9;
  double step_kernels = 15;
  double device_and_slack = 5;
  static constexpr double full = 4;  // times as long
};

struct GpuCalibrationOptions {
  bool quick = false;  // fewer shapes and sizes
  std::uint64_t seed = 1;
};

// `progress(part, parts)` between the parts, while the GPU is still under load; false ends with Cancelled. Throws
// InputError: built without CUDA, no GPU, a driver that is too old, a device that is lost.
GpuMeasurement measure_gpu(const GpuCalibrationOptions& options,
                           const std::function<bool(std::size_t, std::size_t)>& progress);

}  // namespace spillway::hwprofiles
