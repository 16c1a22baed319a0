// Tools of every part of a GPU's calibration: the clocks, the time that a part may take, and where points go. In the
// GPU module.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/activity_clock.h"
#include "hwprofiles/calibrate/device_buffers.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/host_clock.h"

namespace spillway::hwprofiles {

inline double seconds_since(double start) { return host_seconds() - start; }

inline double elapsed(const Event& from, const Event& to) {
  require(cudaEventSynchronize(to.get()), "timing");
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "timing");
  return static_cast<double>(milliseconds) * 1e-3;
}
inline void record(const Event& event, const Stream& stream) {
  require(cudaEventRecord(event.get(), stream.get()), "recording an event");
}
inline void wait_for(const Stream& stream, const Event& event) {
  require(cudaStreamWaitEvent(stream.get(), event.get(), 0), "waiting for an event");
}
inline void copy_async(std::byte* device, std::byte* host, std::size_t bytes, bool to_device, const Stream& stream) {
  require(to_device ? cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.get())
                    : cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.get()),
          "copying");
}

inline Bytes bytes_of(std::size_t count) { return Bytes(static_cast<std::int64_t>(count)); }

inline constexpr std::size_t product_workspace = std::size_t{32} << 20;  // bytes, of cuBLASLt

// Operands and results of products, shared by all shapes: results are never read, so numbers do not grow.
struct ProductMemory {
  DeviceBuffer operands, results, workspace;
};
// Bytes of a matrix, so that the next one is aligned.
inline std::size_t rounded(std::int64_t elements, std::size_t element) {
  return (static_cast<std::size_t>(elements) * element + 511) / 512 * 512;
}

// sample() so many times, after one that warms up.
template <class Sample>
std::vector<double> repeat(int times, Sample sample) {
  std::vector<double> samples;
  sample();
  for (int i = 0; i < times; ++i) samples.push_back(sample());
  return samples;
}

class GpuMeter {
 public:
  GpuMeter(const GpuCalibrationOptions& options, const GpuCalibrationHooks& hooks, GpuMeasurement& measured)
      : options_(options), hooks_(hooks), measured_(measured) {}

  [[nodiscard]] const GpuCalibrationOptions& options() const { return options_; }
  [[nodiscard]] const GpuIdentity& device() const { return measured_.device; }
  [[nodiscard]] ActivityClock& activity() { return activity_; }
  [[nodiscard]] unsigned multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] bool has_fp8() const { return has_fp8_; }
  // Clock and power, now; empty without NVML.
  [[nodiscard]] NvmlState load() const { return hooks_.load ? hooks_.load() : NvmlState{}; }

  // Throws InputError where there is no device to ask, and Cancelled.
  void ask_device();
  void begin_part(const char* name, double seconds);
  // Whether the part may go on; a note says so the first time that it may not.
  bool in_time();
  [[nodiscard]] double part_seconds() const { return part_seconds_; }
  void limit_part(double seconds) { part_seconds_ = seconds; }

  void note(std::string text);
  void failed(const char* part, const InputError& error);
  void add(GpuPoint point);
  void add(PointKind kind, std::vector<double> samples);

  // Seconds of work(0), work(1), ...: of each by CUPTI, whatever kernels it launches, or the time by events.
  template <class Work>
  std::vector<double> timed(const Stream& stream, int works, Work work, ActivityClock::Tracing* tracing);
  ActivityClock::Tracing* trace(std::optional<ActivityClock::Tracing>& tracing) {
    if (!activity_.works()) return nullptr;
    return &tracing.emplace(activity_);
  }

 private:
  static constexpr std::size_t parts = 10;

  void tell() const {
    if (hooks_.added) hooks_.added(measured_);
  }

  const GpuCalibrationOptions& options_;
  const GpuCalibrationHooks& hooks_;
  GpuMeasurement& measured_;
  ActivityClock activity_;
  unsigned multiprocessors_ = 1;
  bool has_fp8_ = false;
  std::size_t part_ = 0;
  const char* part_name_ = "";
  double part_begin_ = 0, part_seconds_ = 0;
  bool part_is_cut_ = false;
};

template <class Work>
std::vector<double> GpuMeter::timed(const Stream& stream, int works, Work work, ActivityClock::Tracing* tracing) {
  work(0);
  std::vector<double> seconds;
  if (tracing != nullptr) {
    tracing->take();
    for (int i = 0; i < works; ++i) work(i);
    const std::vector<Activity> ran = tracing->take();
    const std::size_t kernels = ran.size() / static_cast<std::size_t>(works);
    if (kernels * static_cast<std::size_t>(works) != ran.size()) return {};  // some records were dropped
    for (int i = 0; i < works; ++i) {
      // A product split over k runs a second kernel: its parts are one product.
      double sum = 0;
      for (std::size_t k = 0; k < kernels; ++k) sum += ran[static_cast<std::size_t>(i) * kernels + k].seconds();
      seconds.push_back(sum);
    }
    return seconds;
  }
  stream.wait();
  for (int i = 0; i < works; ++i) {
    const Event before, after;
    record(before, stream);
    work(i);
    record(after, stream);
    seconds.push_back(elapsed(before, after));
  }
  return seconds;
}

// The parts. Each throws InputError where the device fails it.
void measure_launches(GpuMeter& meter);      // calls, starts, gaps, events, the queue
void measure_driver_calls(GpuMeter& meter);  // of memory
void measure_memory(GpuMeter& meter);
void measure_products(GpuMeter& meter);
void measure_copies(GpuMeter& meter);
void measure_sharing(GpuMeter& meter);     // HBM between kernels and copies, multiprocessors between streams
void measure_sustained(GpuMeter& meter);   // rate, clock and power of a long load
void measure_production(GpuMeter& meter);  // attention and norms by cuDNN

}  // namespace spillway::hwprofiles
