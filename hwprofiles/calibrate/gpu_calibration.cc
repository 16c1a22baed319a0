#include "hwprofiles/calibrate/gpu_calibration.h"

#include "hwprofiles/calibrate/cuda_module.h"

namespace spillway::hwprofiles {

GpuMeasurement measure_gpu(const GpuCalibrationOptions& options,
                           const std::function<bool(std::size_t, std::size_t)>& progress) {
  using Measure =
      void (*)(const GpuCalibrationOptions&, const std::function<bool(std::size_t, std::size_t)>&, GpuMeasurement&);
  GpuMeasurement measured;
  reinterpret_cast<Measure>(cuda_module_function("spillway_measure_gpu"))(options, progress, measured);
  return measured;
}

}  // namespace spillway::hwprofiles
