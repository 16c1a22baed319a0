#include "sim/replay/memory_replay.h"

#include <algorithm>
#include <map>

#include "sim/devices/memory/allocation_stream.h"

namespace spillway {
namespace {

constexpr std::size_t most_owners = 12;

AllocationStreamResult run_stream(const Trace& trace, std::int16_t device, const MemoryReplayOptions& options,
                                  Bytes capacity) {
  AllocationStreamOptions stream;
  stream.pool.policy = options.allocator;
  stream.pool.settings = options.settings;
  if (capacity > Bytes(0)) stream.pool.device_memory = capacity;
  stream.device = device;
  stream.keep_rows = true;
  stream.use_recorded_segments = false;
  return replay_allocation_stream(trace, stream);
}

// Follows live bytes through the events, with the block sizes the policy gave.
class Curve {
 public:
  Curve(const Trace& trace, std::span<const Picos> op_start, const AllocationStreamResult& stream, std::int16_t device)
      : trace_(trace), op_start_(op_start), device_(device) {
    for (const AllocationRow& row : stream.rows)
      if (row.tag != no_tag)
        sizes_[row.tag] = row.size;
      else if (row.tag == no_tag)
        initial_ += row.size;
    initial_ += stream.unexplained;
  }

  void fill(MemoryResult& result) {
    Bytes live = initial_;
    Picos now{};
    result.timeline.push_back({now, live, Bytes(0)});
    std::size_t peak_event = 0;
    Bytes peak = live;
    for (std::size_t e = 0; e < trace_.memory_events.size(); ++e) {
      const MemoryEvent& event = trace_.memory_events[e];
      if (event.device != device_) continue;
      now = std::max(now, time_of(event));
      live += change(e, event);
      if (result.timeline.back().time == now)
        result.timeline.back().allocated = std::max(result.timeline.back().allocated, live);
      else
        result.timeline.push_back({now, live, Bytes(0)});
      if (live > peak) {
        peak = live;
        peak_event = e;
        result.peak_time = now;
      }
    }
    name_owners(peak_event, result);
  }

 private:
  struct Live {
    Bytes size{};
    std::uint32_t event = 0;
  };

  [[nodiscard]] Picos time_of(const MemoryEvent& event) const {
    if (event.anchor == OpId::none) return Picos(0);
    const std::size_t op = index_of(event.anchor);
    if (op_start_[op] == unknown_time) return Picos(0);
    const Picos recorded = trace_.ops.start[op];
    const bool timed = event.time != unknown_time && recorded != unknown_time;
    return op_start_[op] + (timed ? std::max(Picos(0), event.time - recorded) : Picos(0));
  }

  Bytes change(std::size_t e, const MemoryEvent& event) {
    if (event.action == MemoryAction::allocate) {
      const auto size = sizes_.find(static_cast<std::uint32_t>(e));
      if (size == sizes_.end()) return Bytes(0);
      live_[event.address.count()] = {size->second, static_cast<std::uint32_t>(e)};
      return size->second;
    }
    if (event.action != MemoryAction::free_completed && event.action != MemoryAction::free_requested) return Bytes(0);
    const auto found = live_.find(event.address.count());
    if (found == live_.end()) {
      if (event.action == MemoryAction::free_completed || initial_freed_ + event.bytes > initial_) return Bytes(0);
      initial_freed_ += event.bytes;
      return -event.bytes;
    }
    const Bytes size = found->second.size;
    live_.erase(found);
    return -size;
  }

  // Replays the events up to the peak once more and groups what is live there.
  void name_owners(std::size_t peak_event, MemoryResult& result) {
    live_.clear();
    initial_freed_ = Bytes(0);
    for (std::size_t e = 0; e <= peak_event && e < trace_.memory_events.size(); ++e)
      if (trace_.memory_events[e].device == device_) static_cast<void>(change(e, trace_.memory_events[e]));
    std::map<std::string, Bytes> groups;
    for (const auto& [address, block] : live_) groups[owner(trace_.memory_events[block.event])] += block.size;
    if (initial_ > initial_freed_) groups["held before the capture"] += initial_ - initial_freed_;
    for (const auto& [name, bytes] : groups) result.owners.push_back({name, bytes});
    std::stable_sort(result.owners.begin(), result.owners.end(),
                     [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
    if (result.owners.size() > most_owners) result.owners.resize(most_owners);
  }

  [[nodiscard]] std::string owner(const MemoryEvent& event) const {
    if (event.tensor != TensorId::none) {
      const TensorRole role = trace_.tensors.role[index_of(event.tensor)];
      if (role != TensorRole::unknown) return std::string(to_string(role));
    }
    const Phase phase = event.anchor == OpId::none ? Phase::unknown : trace_.ops.phase[index_of(event.anchor)];
    return phase == Phase::unknown ? "allocated in an unknown phase" : "allocated in " + std::string(to_string(phase));
  }

  const Trace& trace_;
  std::span<const Picos> op_start_;
  std::int16_t device_;
  std::map<std::uint32_t, Bytes> sizes_;  // by event
  std::map<std::uint64_t, Live> live_;    // by address
  Bytes initial_{}, initial_freed_{};
};

}  // namespace

MemoryResult replay_memory(const Trace& trace, std::span<const Picos> op_start, const MemoryReplayOptions& options) {
  MemoryResult result;
  result.allocator = options.allocator;
  result.capacity = options.capacity;
  const std::vector<std::int16_t> devices = memory_devices(trace);
  if (devices.empty()) return result;
  result.known = true;
  const std::int16_t device = devices.front();
  const AllocationStreamResult needed = run_stream(trace, device, options, Bytes(0));
  result.peak_allocated = Bytes(needed.statistics.all().allocated_bytes.peak);
  result.peak_reserved = Bytes(needed.statistics.all().reserved_bytes.peak);
  result.segments_allocated = needed.segments_allocated;
  if (options.capacity > Bytes(0) && result.peak_reserved > options.capacity) {
    const AllocationStreamResult limited = run_stream(trace, device, options, options.capacity);
    result.out_of_memory = limited.out_of_memory > 0;
    if (result.out_of_memory) {
      result.shortage = result.peak_reserved - options.capacity;
      if (limited.first_out_of_memory) result.explanation = describe(*limited.first_out_of_memory);
    } else {
      result.peak_reserved = Bytes(limited.statistics.all().reserved_bytes.peak);
      result.segments_allocated = limited.segments_allocated;
      result.explanation = "fits because the allocator gives cached segments back and retries";
    }
  }
  Curve(trace, op_start, needed, device).fill(result);
  return result;
}

}  // namespace spillway
