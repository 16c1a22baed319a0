// Durations of what runs on the GPU, from CUPTI's activity records.
#pragma once

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/cuda_require.cuh"

namespace spillway::hwprofiles {

// Durations of kernels and copies by CUPTI, in the order they ran; one at a time in a process.
class ActivityClock {
 public:
  ActivityClock() {
    current() = this;
    CUptiResult result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY})
      if (result == CUPTI_SUCCESS) result = cuptiActivityEnable(kind);
    works_ = result == CUPTI_SUCCESS;
    if (works_) return;
    const char* name = nullptr;
    why_not_ = cuptiGetResultString(result, &name) == CUPTI_SUCCESS && name != nullptr ? name : "CUPTI does not start";
  }
  ActivityClock(const ActivityClock&) = delete;
  ActivityClock& operator=(const ActivityClock&) = delete;
  ~ActivityClock() {
    if (works_) {
      cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY);
      cuptiActivityFlushAll(0);
    }
    current() = nullptr;
  }
  // Whether the system lets us (a container or another profiler may not).
  bool works() const { return works_; }
  // CUPTI's name of the error; empty where it works.
  const std::string& why_not() const { return why_not_; }

  // What ran since the last call. Waits for the device.
  std::vector<double> take() {
    require(cudaDeviceSynchronize(), "measuring");
    cuptiActivityFlushAll(0);
    const std::lock_guard lock(mutex_);
    std::sort(records_.begin(), records_.end(), [](const Record& a, const Record& b) { return a.start < b.start; });
    std::vector<double> seconds;
    for (const Record& record : records_) seconds.push_back(static_cast<double>(record.end - record.start) * 1e-9);
    records_.clear();
    return seconds;
  }

 private:
  struct Record {
    std::uint64_t start = 0, end = 0;
  };
  static ActivityClock*& current() {
    static ActivityClock* clock = nullptr;
    return clock;
  }
  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
    *size = std::size_t{1} << 20;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
    *most_records = 0;
  }
  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    if (current() != nullptr) current()->read(buffer, valid);
    std::free(buffer);
  }
  void read(std::uint8_t* buffer, std::size_t valid) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        records_.push_back({kernel->start, kernel->end});
      } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        records_.push_back({copy->start, copy->end});
      }
    }
  }

  bool works_ = false;
  std::string why_not_;
  std::mutex mutex_;
  std::vector<Record> records_;
};

}  // namespace spillway::hwprofiles
