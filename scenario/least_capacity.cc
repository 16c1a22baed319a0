#include "scenario/least_capacity.h"

#include <algorithm>
#include <limits>

#include "base/stop.h"
#include "sim/devices/memory/allocation_stream.h"

namespace spillway::scenario {
namespace {

class DeviceSearch {
 public:
  DeviceSearch(const Trace& trace, const MemoryReplayOptions& options, std::int16_t device, const EventIndex& events)
      : trace_(trace),
        options_(options),
        device_(device),
        events_(events),
        jumps_(limit_matters_only_when_met(options)) {
    if (options.allocator == ideal_policy) grain_ = Bytes(512);
  }

  // Within `capacity`, or the least above it that does. failed: it is known not to run there, and its peaks.
  [[nodiscard]] Bytes least(Bytes capacity, const DevicePeaks* failed) {
    if (failed == nullptr && runs_within(capacity)) return capacity;
    const DevicePeaks needed = failed != nullptr ? *failed : without_limit();
    low_ = std::max({low_, capacity.count() / grain_.count(), (needed.allocated.count() - 1) / grain_.count()});
    high_ = in_grains(needed.reserved);
    if (!jumps_) {
      high_ = std::max(low_, high_) + 1;
      while (!is_refused_ && !runs_within(grain_ * high_)) high_ = low_ + std::max<std::int64_t>(1, high_ / 16);
    }
    while (!is_refused_ && high_ - low_ > 1) {
      check_stop();
      runs_within(grain_ * (low_ + (high_ - low_) / 2));
    }
    return grain_ * high_;
  }
  [[nodiscard]] bool is_refused() const { return is_refused_; }

 private:
  [[nodiscard]] AllocationStreamResult replayed(Bytes capacity) {
    AllocationStreamOptions stream = stream_options(options_, device_, capacity);
    stream.stop_when_out_of_memory = true;
    AllocationStreamResult run = replay_allocation_stream(trace_, events_, stream);
    is_refused_ = is_refused_ || run.refused != nullptr;
    return run;
  }
  [[nodiscard]] DevicePeaks without_limit() {
    const MemoryStatistics all = replayed(Bytes(0)).statistics;
    return {.allocated = Bytes(all.all().allocated_bytes.peak), .reserved = Bytes(all.all().reserved_bytes.peak)};
  }
  [[nodiscard]] std::int64_t in_grains(Bytes bytes) const {
    return (bytes.count() + grain_.count() - 1) / grain_.count();
  }

  // Tightens low_ and high_: between two limits that a run meets alike it goes the same way.
  bool runs_within(Bytes capacity) {
    const AllocationStreamResult run = replayed(capacity);
    const bool runs = run.out_of_memory == 0;
    std::int64_t alike = capacity.count() / grain_.count();
    if (jumps_ && runs) alike = std::min(alike, in_grains(Bytes(run.statistics.all().reserved_bytes.peak)));
    if (jumps_ && !runs && run.least_refused < Bytes::max()) alike = std::max(alike, in_grains(run.least_refused) - 1);
    if (runs)
      high_ = std::min(high_, alike);
    else
      low_ = std::max(low_, alike);
    return runs;
  }

  const Trace& trace_;
  const MemoryReplayOptions& options_;
  std::int16_t device_;
  const EventIndex& events_;
  Bytes grain_ = Bytes(2 << 20);
  bool jumps_, is_refused_ = false;
  // In grains: the step fails within low_, and runs within high_.
  std::int64_t low_ = 0, high_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

std::optional<Bytes> least_capacity(const Trace& trace, const MemoryReplayOptions& options,
                                    const std::optional<DevicePeaks>& failed) {
  Bytes least = options.capacity;
  const std::vector<std::int16_t> devices = memory_devices(trace);
  for (const auto& [device, events] : index_memory_events(trace)) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
    DeviceSearch search(trace, options, device, events);
    least = search.least(least, failed && failed->device == device && least == options.capacity ? &*failed : nullptr);
    if (search.is_refused()) return std::nullopt;
  }
  return least;
}

}  // namespace spillway::scenario
