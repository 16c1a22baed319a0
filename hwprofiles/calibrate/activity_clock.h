// Begins and ends of what runs on the GPU, from CUPTI's activity records.
#pragma once

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/calibrate/cuda_require.h"

namespace spillway::hwprofiles {

// Times of a kernel, a copy or a set, in nanoseconds of CUPTI's clock.
struct Activity {
  std::uint64_t start = 0, end = 0;
  [[nodiscard]] double seconds() const { return static_cast<double>(end - start) * 1e-9; }
};

// One at a time in a process. Records nothing but within a Tracing: to be traced costs the host time at each launch.
class ActivityClock {
 public:
  ActivityClock() {
    current() = this;
    CUptiResult result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (result == CUPTI_SUCCESS) result = enable();
    works_ = result == CUPTI_SUCCESS;
    disable();
    if (works_) return;
    const char* name = nullptr;
    why_not_ = cuptiGetResultString(result, &name) == CUPTI_SUCCESS && name != nullptr ? name : "CUPTI does not start";
  }
  ActivityClock(const ActivityClock&) = delete;
  ActivityClock& operator=(const ActivityClock&) = delete;
  ~ActivityClock() {
    if (works_) cuptiActivityFlushAll(0);
    current() = nullptr;
  }
  // Whether the system lets us (a container or another profiler may not).
  [[nodiscard]] bool works() const { return works_; }
  // CUPTI's name of the error; empty where it works.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  // Records kernels, copies and sets while it exists. Precondition: works().
  class Tracing {
   public:
    explicit Tracing(ActivityClock& clock) : clock_(clock) {
      clock_.take();
      if (clock_.enable() != CUPTI_SUCCESS) {
        disable();
        throw InputError("GPU", "tracing", "CUPTI stopped working", "end other profilers");
      }
    }
    Tracing(const Tracing&) = delete;
    Tracing& operator=(const Tracing&) = delete;
    ~Tracing() { disable(); }

    // Activities since the last call, by start. Waits for the device.
    std::vector<Activity> take() { return clock_.take(); }

   private:
    ActivityClock& clock_;
  };

 private:
  static constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                                 CUPTI_ACTIVITY_KIND_MEMSET};

  static CUptiResult enable() {
    for (const CUpti_ActivityKind kind : kinds)
      if (const CUptiResult result = cuptiActivityEnable(kind); result != CUPTI_SUCCESS) return result;
    return CUPTI_SUCCESS;
  }
  static void disable() {
    for (const CUpti_ActivityKind kind : kinds) cuptiActivityDisable(kind);
  }
  std::vector<Activity> take() {
    require(cudaDeviceSynchronize(), "measuring");
    cuptiActivityFlushAll(0);
    const std::lock_guard lock(mutex_);
    std::sort(records_.begin(), records_.end(), [](const Activity& a, const Activity& b) { return a.start < b.start; });
    return std::exchange(records_, {});
  }
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
      } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const auto* set = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        records_.push_back({set->start, set->end});
      }
    }
  }

  bool works_ = false;
  std::string why_not_;
  std::mutex mutex_;
  std::vector<Activity> records_;
};

}  // namespace spillway::hwprofiles
