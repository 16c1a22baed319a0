#include "hwprofiles/calibrate/gpu_calibration.h"

#include "hwprofiles/calibrate/cuda_module.h"

namespace spillway::hwprofiles {

GpuMeasurement measure_gpu(const GpuCalibrationOptions& options, const GpuCalibrationHooks& hooks) {
  using Measure = void (*)(const GpuCalibrationOptions&, const GpuCalibrationHooks&, GpuMeasurement&);
  GpuMeasurement measured;
  reinterpret_cast<Measure>(cuda_module_function("spillway_measure_gpu"))(options, hooks, measured);
  return measured;
}

}  // namespace spillway::hwprofiles
