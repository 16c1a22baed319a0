// In the GPU module; see gpu_calibration.h. The parts are in measure_*.cc.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/gpu_meter.h"

namespace spillway::hwprofiles {

void GpuMeter::ask_device() {
  GpuIdentity& device = measured_.device;
  require(cudaSetDevice(0), "choosing it");
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "asking its memory");
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0), "asking its properties");
  device.name = properties.name;
  device.memory = bytes_of(total);
  device.context = bytes_of(total - free);
  device.sm_count = properties.multiProcessorCount;
  device.l2_cache = Bytes(properties.l2CacheSize);
  // One engine each way wherever copies run beside kernels; more than two are for peers.
  device.copy_engines_per_direction = std::max(1, properties.asyncEngineCount / 2);
  int driver = 0;
  require(cudaDriverGetVersion(&driver), "asking the driver");
  device.driver = std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  device.power_limit_watts = load().limit_milliwatts.value_or(0) * 1e-3;
  multiprocessors_ = static_cast<unsigned>(properties.multiProcessorCount);
  has_fp8_ = properties.major * 10 + properties.minor >= 89;
  tell();
}

void GpuMeter::begin_part(const char* name, double seconds) {
  if (hooks_.progress && !hooks_.progress(part_++, parts)) throw Cancelled{};
  part_name_ = name;
  part_begin_ = host_seconds();
  part_seconds_ = seconds * (options_.quick ? 1 : GpuTimeBudget::full);
  part_is_cut_ = false;
}

bool GpuMeter::in_time() {
  if (seconds_since(part_begin_) < part_seconds_) return true;
  if (!part_is_cut_) note(std::string("cut short by the time it may take: ") + part_name_);
  part_is_cut_ = true;
  return false;
}

void GpuMeter::note(std::string text) {
  measured_.notes.push_back(std::move(text));
  tell();
}

void GpuMeter::failed(const char* part, const InputError& error) {
  measured_.failed.push_back({part, error.cause() + (error.remedy().empty() ? "" : "; " + error.remedy())});
  tell();
}

void GpuMeter::add(GpuPoint point) {
  if (!(point.value.median > 0)) return;  // shorter than the clock can tell
  measured_.points.push_back(std::move(point));
  tell();
}

void GpuMeter::add(PointKind kind, std::vector<double> samples) {
  if (samples.empty()) return;
  const auto count = static_cast<std::int64_t>(samples.size());
  add({.kind = kind, .value = spread_of(std::move(samples)), .samples = count});
}

namespace {

// Whether the device is still there after it.
bool measure_part(GpuMeter& meter, const char* name, double seconds, void (*part)(GpuMeter&)) {
  meter.begin_part(name, seconds);
  try {
    part(meter);
    return true;
  } catch (const InputError& error) {
    meter.failed(name, error);
  }
  cudaGetLastError();  // it has been told
  return cudaDeviceSynchronize() == cudaSuccess;
}

void measure_all(GpuMeter& meter, GpuMeasurement& measured) {
  const GpuTimeBudget budget;
  meter.begin_part("device", budget.device_and_slack);
  meter.ask_device();
  if (!meter.activity().works())
    meter.note("timed by events, which add a few microseconds: " + meter.activity().why_not() +
               " (to allow activity records: run as root, or load the driver with "
               "NVreg_RestrictProfilingToAdminUsers=0)");
  const bool lasted = measure_part(meter, "launches", budget.launches, measure_launches) &&
                      measure_part(meter, "driver calls", budget.driver_calls, measure_driver_calls) &&
                      measure_part(meter, "memory", budget.memory, measure_memory) &&
                      measure_part(meter, "products", budget.products, measure_products) &&
                      measure_part(meter, "copies", budget.copies, measure_copies) &&
                      measure_part(meter, "sharing", budget.sharing, measure_sharing) &&
                      measure_part(meter, "sustained load", budget.sustained, measure_sustained) &&
                      // Last: of what other libraries do, nothing else is to depend.
                      measure_part(meter, "production kernels", budget.production, measure_production);
  if (lasted) meter.begin_part("", 0);
  measured.is_whole = lasted;
}

}  // namespace
}  // namespace spillway::hwprofiles

extern "C" void spillway_measure_gpu(const spillway::hwprofiles::GpuCalibrationOptions& options,
                                     const spillway::hwprofiles::GpuCalibrationHooks& hooks,
                                     spillway::hwprofiles::GpuMeasurement& measured) {
  spillway::hwprofiles::GpuMeter meter(options, hooks, measured);
  spillway::hwprofiles::measure_all(meter, measured);
}
