#include "sim/replay/memory_replay.h"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/devices/memory/allocation_stream.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr std::size_t most_owners = 12;

AllocationStreamResult run_stream(const Trace& trace, std::int16_t device, const MemoryReplayOptions& options,
                                  Bytes capacity, bool peaks_only = false, bool repeat = false) {
  AllocationStreamOptions stream;
  stream.pool.policy = options.allocator;
  stream.pool.settings = options.settings;
  stream.pool.plan = options.plan;
  stream.repeat = repeat;
  if (capacity > Bytes(0)) stream.pool.device_memory = capacity;
  stream.device = device;
  stream.keep_rows = !peaks_only;
  stream.keep_totals = !peaks_only;
  stream.use_recorded_segments = false;
  return replay_allocation_stream(trace, stream);
}

// What is held over the replay's time, and whose it is at the peak.
class HeldCurve {
 public:
  HeldCurve(const Trace& trace, std::span<const Picos> op_start, const AllocationStreamResult& stream)
      : trace_(trace), op_start_(op_start), stream_(stream), initial_(stream.initial.allocated) {
    for (const AllocationRow& row : stream.rows)
      if (row.tag != no_tag) sizes_[row.tag] = row.size;
  }

  void fill(MemoryResult& result) {
    Picos now{};
    result.timeline.push_back({now, stream_.initial.allocated, stream_.initial.reserved});
    std::optional<std::uint32_t> peak_event;
    Bytes peak = stream_.initial.allocated;
    for (const HeldMemory& held : stream_.held) {
      now = std::max(now, time_of(trace_.memory_events[held.event]));
      if (result.timeline.back().time != now) result.timeline.push_back({now, Bytes(0), Bytes(0)});
      MemoryPoint& point = result.timeline.back();  // the most within an instant
      point.allocated = std::max(point.allocated, held.allocated);
      point.reserved = std::max(point.reserved, held.reserved);
      if (held.allocated > peak) {
        peak = held.allocated;
        peak_event = held.event;
        result.peak_time = now;
      }
    }
    result.owners = owners_at(peak_event);
  }

  // Groups what is live after the event; none: before the first. Once per curve.
  std::vector<PeakOwner> owners_at(std::optional<std::uint32_t> last_event) {
    std::vector<PeakOwner> owners;
    for (const HeldMemory& held : stream_.held) {
      if (!last_event || held.event > *last_event) break;
      follow(held.event);
    }
    std::map<std::string, Bytes> groups;
    for (const auto& [address, block] : live_) groups[owner(trace_.memory_events[block.event])] += block.size;
    if (initial_ > initial_freed_) groups["held before the capture"] += initial_ - initial_freed_;
    for (const auto& [name, bytes] : groups) owners.push_back({name, bytes});
    std::stable_sort(owners.begin(), owners.end(),
                     [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
    if (owners.size() > most_owners) owners.resize(most_owners);
    return owners;
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

  void follow(std::uint32_t e) {
    const MemoryEvent& event = trace_.memory_events[e];
    if (event.action == MemoryAction::allocate) {
      const auto size = sizes_.find(e);
      if (size != sizes_.end()) live_[event.address.count()] = {size->second, e};
      return;
    }
    if (event.action != MemoryAction::free_completed && event.action != MemoryAction::free_requested) return;
    const bool seen = live_.erase(event.address.count()) > 0;
    if (!seen && event.action == MemoryAction::free_requested && initial_freed_ + event.bytes <= initial_)
      initial_freed_ += event.bytes;
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
  const AllocationStreamResult& stream_;
  std::map<std::uint32_t, Bytes> sizes_;  // by event
  std::map<std::uint64_t, Live> live_;    // by address
  Bytes initial_{}, initial_freed_{};
};

std::string gibibytes(Bytes bytes) {
  const std::int64_t hundredths = (bytes.count() * 100 + (std::int64_t{1} << 29)) >> 30;
  const std::string cents = std::to_string(100 + hundredths % 100).substr(1);
  return std::to_string(hundredths / 100) + "." + cents + " GiB";
}

// Who held the memory when it ran out, and which allocator would have got by with less.
std::string why_it_failed(const Trace& trace, std::span<const Picos> op_start, const MemoryReplayOptions& options,
                          std::int16_t device, const AllocationStreamResult& limited) {
  std::string text = describe(*limited.first_out_of_memory);
  text += "; resident:";
  const char* separator = " ";
  for (const PeakOwner& owner : HeldCurve(trace, op_start, limited).owners_at(limited.first_failed_event)) {
    text += separator + gibibytes(owner.bytes) + " " + owner.name;
    separator = ", ";
  }
  for (const char* other : {"torch-expandable", "ideal"}) {
    if (options.allocator == other) continue;
    MemoryReplayOptions alternative;
    alternative.allocator = other;
    const AllocationStreamResult result = run_stream(trace, device, alternative, options.capacity, true);
    if (result.out_of_memory > 0) continue;
    const std::string most = gibibytes(Bytes(result.statistics.all().reserved_bytes.peak));
    return text + (std::string(other) == "ideal" ? "; without any fragmentation " + most + " would do"
                                                 : "; it fits with expandable_segments:True (" + most + " reserved)");
  }
  return text + "; it would not fit without any fragmentation either";
}

// The last host call before an event.
OpId host_call_of(const Trace& trace, const MemoryEvent& event) {
  if (event.anchor == OpId::none || is_host_call(trace.ops.kind[index_of(event.anchor)])) return event.anchor;
  return trace.ops.launched_by[index_of(event.anchor)];
}

}  // namespace

AllocatorTime allocator_time(const Trace& trace, const MemoryReplayOptions& options, const DriverTimes& times) {
  AllocatorTime result;
  for (const std::int16_t device : memory_devices(trace)) {
    const AllocationStreamResult run = run_stream(trace, device, options, options.capacity, true, true);
    for (const EventCost& cost : run.costs) result.first_step += host_time(cost.cost, times);
    for (const EventCost& cost : run.repeated_costs) {
      const OpId after = host_call_of(trace, trace.memory_events[cost.event]);
      if (after == OpId::none) continue;
      result.delays.push_back({after, host_time(cost.cost, times), waits_for_device(cost.cost)});
      result.step += result.delays.back().time;
    }
  }
  std::stable_sort(result.delays.begin(), result.delays.end(),
                   [](const HostDelay& a, const HostDelay& b) { return a.after < b.after; });
  return result;
}

std::vector<DevicePeaks> replay_memory_peaks(const Trace& trace, const MemoryReplayOptions& options) {
  std::vector<DevicePeaks> peaks;
  for (const std::int16_t device : memory_devices(trace)) {
    const AllocationStreamResult needed = run_stream(trace, device, options, Bytes(0), true);
    DevicePeaks& found = peaks.emplace_back();
    found.device = device;
    found.allocated = Bytes(needed.statistics.all().allocated_bytes.peak);
    found.reserved = Bytes(needed.statistics.all().reserved_bytes.peak);
    if (options.capacity > Bytes(0) && found.reserved > options.capacity)
      found.fits = run_stream(trace, device, options, options.capacity, true).out_of_memory == 0;
  }
  return peaks;
}

const DevicePeaks& most_reserved(const std::vector<DevicePeaks>& peaks) {
  SPILLWAY_ASSERT(!peaks.empty());
  return *std::max_element(peaks.begin(), peaks.end(),
                           [](const DevicePeaks& a, const DevicePeaks& b) { return a.reserved < b.reserved; });
}

MemoryResult replay_memory(const Trace& trace, std::span<const Picos> op_start, const MemoryReplayOptions& given) {
  MemoryReplayOptions options = given;
  MemoryResult result;
  std::vector<std::int16_t> devices = memory_devices(trace);
  if (options.device)
    devices = {*options.device};
  else if (devices.size() > 1)
    devices = {most_reserved(replay_memory_peaks(trace, options)).device};
  if (devices.empty()) {
    if (trace.memory_events.empty()) return result;
    options = {.allocator = "ideal"};  // host memory is not the GPU allocator's business
    result.on_host = true;
  }
  result.allocator = options.allocator;
  result.capacity = options.capacity;
  result.known = true;
  const std::int16_t device = devices.empty() ? std::int16_t{-1} : devices.front();
  const AllocationStreamResult needed = run_stream(trace, device, options, Bytes(0));
  result.peak_allocated = Bytes(needed.statistics.all().allocated_bytes.peak);
  result.peak_reserved = Bytes(needed.statistics.all().reserved_bytes.peak);
  result.segments_allocated = needed.segments_allocated;
  if (options.capacity > Bytes(0) && result.peak_reserved > options.capacity) {
    const AllocationStreamResult limited = run_stream(trace, device, options, options.capacity);
    result.out_of_memory = limited.out_of_memory > 0;
    if (result.out_of_memory) {
      result.shortage = result.peak_reserved - options.capacity;
      if (limited.first_out_of_memory) result.explanation = why_it_failed(trace, op_start, options, device, limited);
    } else {
      result.peak_reserved = Bytes(limited.statistics.all().reserved_bytes.peak);
      result.segments_allocated = limited.segments_allocated;
      result.explanation = "fits because the allocator gives cached segments back and retries";
    }
  }
  HeldCurve(trace, op_start, needed).fill(result);
  return result;
}

}  // namespace spillway
