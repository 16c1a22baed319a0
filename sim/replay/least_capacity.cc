#include "sim/replay/least_capacity.h"

#include <algorithm>

#include "base/stop.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::sim {
namespace {

class DeviceSearch {
 public:
  DeviceSearch(const Trace& trace, const MemoryReplayOptions& options, std::int16_t device, const EventIndex& events)
      : trace_(trace), options_(options), device_(device), events_(events) {
    if (options.allocator == ideal_policy) grain_ = Bytes(512);
  }

  // Within `capacity`, or the least above it that does.
  [[nodiscard]] Bytes least(Bytes capacity) const {
    if (runs_within(capacity)) return capacity;
    const MemoryStatistics needed = replayed(Bytes(0)).statistics;
    // In grains: the step fails within `low`, and runs within `high`.
    std::int64_t low = std::max(capacity.count(), needed.all().allocated_bytes.peak - 1) / grain_.count();
    std::int64_t high = std::max(low, needed.all().reserved_bytes.peak / grain_.count()) + 1;
    while (!runs_within(grain_ * high)) {
      low = high;
      high += std::max<std::int64_t>(1, high / 16);
    }
    while (high - low > 1) {
      check_stop();
      const std::int64_t middle = low + (high - low) / 2;
      (runs_within(grain_ * middle) ? high : low) = middle;
    }
    return grain_ * high;
  }

 private:
  [[nodiscard]] AllocationStreamResult replayed(Bytes capacity) const {
    AllocationStreamOptions stream = stream_options(options_, device_, capacity);
    stream.stop_when_out_of_memory = true;
    return replay_allocation_stream(trace_, events_, stream);
  }
  [[nodiscard]] bool runs_within(Bytes capacity) const { return replayed(capacity).out_of_memory == 0; }

  const Trace& trace_;
  const MemoryReplayOptions& options_;
  std::int16_t device_;
  const EventIndex& events_;
  Bytes grain_ = Bytes(2 << 20);
};

}  // namespace

Bytes least_capacity(const Trace& trace, const MemoryReplayOptions& options) {
  Bytes least = options.capacity;
  const std::vector<std::int16_t> devices = memory_devices(trace);
  for (const auto& [device, events] : index_memory_events(trace))
    if (std::find(devices.begin(), devices.end(), device) != devices.end())
      least = DeviceSearch(trace, options, device, events).least(least);
  return least;
}

}  // namespace spillway::sim
