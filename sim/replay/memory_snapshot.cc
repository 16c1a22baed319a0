#include "sim/replay/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

class Placer {
 public:
  Placer(Trace& trace, const AllocationStreamResult& run, const std::vector<Picos>& times, bool completes)
      : trace_(trace), run_(run), times_(times), completes_(completes) {
    for (const AllocationRow& row : run.rows)
      if (row.tag != no_tag) rows_.emplace(row.tag, &row);
  }

  void append(std::vector<MemoryEvent>& events) {
    auto change = run_.segment_changes.begin();
    auto held = run_.held.begin();
    for (std::size_t i = 0; i < trace_.memory_events.size(); ++i) {
      MemoryEvent event = trace_.memory_events[i];
      if (event.device != run_.device) continue;
      event.time = times_[i];
      if (held != run_.held.end()) {
        event.total_allocated = held->allocated;
        event.total_reserved = held->reserved;
        ++held;
      }
      for (; change != run_.segment_changes.end() && change->event <= i; ++change)
        events.push_back(segment_event(*change, event));
      if (event.action == MemoryAction::allocate)
        allocate(event, static_cast<std::uint32_t>(i), events);
      else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed)
        free(event, events);
    }
  }

  void append_segments() const {
    for (const SegmentState& state : run_.final_state.segments) {
      MemorySegment segment{.address = state.address, .total = state.total};
      segment.device = run_.device;
      segment.stream = lane_of(state.stream);
      segment.large = state.large;
      segment.expandable = state.expandable;
      segment.first_block = static_cast<std::uint32_t>(trace_.memory_blocks.size());
      segment.block_count = state.block_count;
      const auto first = run_.final_state.blocks.begin() + state.first_block;
      trace_.memory_blocks.insert(trace_.memory_blocks.end(), first, first + state.block_count);
      trace_.memory_segments.push_back(segment);
    }
  }

 private:
  static MemoryEvent segment_event(const SegmentChange& change, const MemoryEvent& cause) {
    MemoryEvent event{.time = cause.time, .action = change.action, .device = cause.device};
    event.address = change.address;
    event.bytes = change.bytes;
    event.stream = cause.stream;
    event.anchor = cause.anchor;
    return event;
  }

  void allocate(MemoryEvent event, std::uint32_t index, std::vector<MemoryEvent>& events) {
    const auto row = rows_.find(index);
    if (row == rows_.end()) {
      if (event.bytes == Bytes(0)) return;
      event.action = MemoryAction::out_of_memory;
      events.push_back(event);
      return;
    }
    placed_[event.address] = row->second->address;
    event.address = row->second->address;
    events.push_back(event);
  }

  void free(MemoryEvent event, std::vector<MemoryEvent>& events) {
    const auto placed = placed_.find(event.address);
    if (placed == placed_.end()) return;  // allocated before the events, or never
    event.address = placed->second;
    events.push_back(event);
    if (completes_) {
      event.action = MemoryAction::free_completed;
      events.push_back(event);
    }
    if (event.action == MemoryAction::free_completed) placed_.erase(placed);
  }

  [[nodiscard]] LaneId lane_of(std::int64_t stream) const {
    for (std::size_t i = 0; i < trace_.lanes.size(); ++i)
      if (trace_.lanes[i].kind == LaneKind::stream && trace_.lanes[i].device == run_.device &&
          trace_.lanes[i].number == stream)
        return static_cast<LaneId>(i);
    return LaneId::none;
  }

  Trace& trace_;
  const AllocationStreamResult& run_;
  const std::vector<Picos>& times_;
  bool completes_;
  std::map<std::uint32_t, const AllocationRow*> rows_;
  std::map<Addr, Addr> placed_;  // by the trace's address
};

}  // namespace

Trace placed_snapshot(Trace trace, std::span<const AllocationStreamResult> runs, std::span<const Picos> op_start) {
  std::vector<Picos> times;
  Picos now{};
  bool requests = false, completions = false;
  for (const MemoryEvent& event : trace.memory_events) {
    const std::size_t op = event.anchor == OpId::none ? op_start.size() : index_of(event.anchor);
    if (op < op_start.size() && op_start[op] != unknown_time) now = std::max(now, op_start[op]);
    times.push_back(now);
    requests |= event.action == MemoryAction::free_requested;
    completions |= event.action == MemoryAction::free_completed;
  }
  std::vector<MemoryEvent> events;
  trace.memory_segments.clear();
  trace.memory_blocks.clear();
  for (const AllocationStreamResult& run : runs) {
    Placer placer(trace, run, times, requests && !completions);
    placer.append(events);
    placer.append_segments();
  }
  trace.memory_events = std::move(events);
  return trace;
}

}  // namespace spillway::sim
