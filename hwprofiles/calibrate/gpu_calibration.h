// Measures the GPU: what `spillway calibrate gpu` does. The work is done in the GPU module; raw points come back, as
// they are measured, and no model.
//
// Kernels and copies are timed by CUPTI's activity records where the system allows them, else by events, which add a
// few microseconds to what is short. Tracing is on only while something is timed by it. Operands are random normal
// numbers; buffers rotate through twice the L2 cache, so that none is found there.
#pragma once

#include <cstddef>
#include <functional>

#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/gpu_points.h"

namespace spillway::hwprofiles {

// Time limit of each part, in seconds: quick, and four times that else. Work beyond it is left out, and a note says so.
// In all less than 120 s quick, else less than eight minutes.
struct GpuTimeBudget {
  double device_and_slack = 5, launches = 5, driver_calls = 3, memory = 8, products = 20, copies = 10, sharing = 13;
  double sustained = 22, production = 30;
  static constexpr double full = 4;  // times as long
};

struct GpuCalibrationOptions {
  bool quick = false;                // fewer shapes and sizes
  double sustained_seconds = 20;     // of load
  std::int64_t most_products = 0;    // of each precision; 0: all
  std::int64_t most_production = 0;  // points of cuDNN's kernels; 0: all
};

struct GpuCalibrationHooks {
  // (part, parts) between the parts; false ends with Cancelled.
  std::function<bool(std::size_t, std::size_t)> progress;
  // After each point, note or part that failed, with all there is.
  std::function<void(const GpuMeasurement&)> added;
  // Clock and power, now; may be empty.
  std::function<NvmlState()> load;
};

// A part that fails is in `failed`, and the others are measured all the same, unless the device is lost. Throws
// InputError where nothing can be measured at all: built without CUDA, no GPU, a driver that is too old.
GpuMeasurement measure_gpu(const GpuCalibrationOptions& options, const GpuCalibrationHooks& hooks);

}  // namespace spillway::hwprofiles
