// What every function of the virtual libraries begins with, and what CUPTI is told of it. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tests/virtual_gpu/device.h"

namespace spillway::virtual_gpu {

inline std::recursive_mutex& one_at_a_time() {
  static std::recursive_mutex mutex;
  return mutex;
}
inline Device& device() { return Device::instance(); }
inline const Constants& constants() { return device().constants(); }

// For kernels of other files: submits, at the cost of a launch. Bytes of device memory from an address on; 0: none
// there.
void launch_for(const char* name, double seconds, double bytes, std::uint64_t stream);
std::size_t device_bytes_at(const void* address);

// Activity records of the call under way (cupti.cc), where they are asked for. Times are the device's clock.
void trace_call(const char* name, double begin, std::uint32_t correlation);  // that ends now
struct TracedSync {
  enum class Kind : std::uint8_t { event, stream_wait, stream, context };
  Kind kind = Kind::context;
  double begin = 0;  // it ends now
  std::uint32_t stream = 0;
  std::uint64_t event = 0;
};
void trace_sync(const TracedSync& sync);
void trace_event(std::uint32_t stream, std::uint64_t event);  // recorded
void trace_memory(bool is_release, const void* address, std::size_t bytes);

// The time it takes, whether it is to fail; and, when it ends, its record.
class Call {
 public:
  explicit Call(const char* name, double seconds = -1)
      : lock_(one_at_a_time()), name_(name), begin_(device().now()), outer_(device().open_call) {
    correlation_ = device().open_call = ++device().next_correlation;
    fails_ = device().enter(name, seconds < 0 ? constants().other_call : seconds);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    trace_call(name_, begin_, correlation_);
    device().open_call = outer_;
  }
  explicit operator bool() const { return !fails_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  const char* name_;
  double begin_;
  std::uint32_t outer_, correlation_ = 0;
  bool fails_ = false;
};

}  // namespace spillway::virtual_gpu
