#include "sim/pictures/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/devices/memory/memory_policies.h"

namespace spillway::sim {
namespace {

class Placer {
 public:
  Placer(Trace& trace, const AllocationStreamResult& run, std::span<const Picos> times, bool completes)
      : trace_(trace), run_(run), times_(times), completes_(completes) {
    for (const AllocationRow& row : run.rows)
      if (row.tag != no_tag) rows_.emplace(row.tag, &row);
  }

  void append(std::vector<MemoryEvent>& events) {
    auto change = run_.segment_changes.begin();
    auto held = run_.held.begin();
    Picos now{};
    for (std::size_t i = 0; i < trace_.memory_events.size(); ++i) {
      MemoryEvent event = trace_.memory_events[i];
      if (event.device != run_.device) continue;
      if (i < times_.size()) now = std::max(now, times_[i]);
      event.time = now;
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
        free(event, static_cast<std::uint32_t>(i), events);
    }
  }

  void append_segments() {
    for (const auto& [recorded, block] : placed_) asked_[block.address] = block.bytes;
    for (const SegmentState& state : run_.final_state.segments) {
      MemorySegment segment{.address = state.address, .total = state.total};
      segment.device = run_.device;
      segment.stream = lane_of(state.stream);
      segment.large = state.large;
      segment.expandable = state.expandable;
      segment.first_block = static_cast<std::uint32_t>(trace_.memory_blocks.size());
      segment.block_count = state.block_count;
      for (std::uint32_t i = 0; i < state.block_count; ++i)
        trace_.memory_blocks.push_back(as_asked(run_.final_state.blocks[state.first_block + i]));
      trace_.memory_segments.push_back(segment);
    }
  }

 private:
  struct Placed {
    Addr address{};
    Bytes bytes{};
  };

  // Some policies know only how large a block is.
  [[nodiscard]] MemoryBlock as_asked(MemoryBlock block) const {
    const auto found = asked_.find(block.address);
    if (block.state == BlockState::allocated && found != asked_.end())
      block.requested = std::min(found->second, block.size);
    return block;
  }

  static MemoryEvent segment_event(const SegmentChange& change, const MemoryEvent& cause) {
    MemoryEvent event{.time = cause.time, .action = change.action, .device = cause.device};
    event.address = change.address;
    event.bytes = change.bytes;
    event.stream = cause.stream;
    event.anchor = cause.anchor;
    event.tensor = cause.tensor;
    return event;
  }

  void allocate(MemoryEvent event, std::uint32_t index, std::vector<MemoryEvent>& events) {
    const auto row = rows_.find(index);
    if (row == rows_.end()) {
      // A tensor from before the step may lie in a larger block than its own.
      if (event.bytes == Bytes(0) || (run_.started_up && event.anchor == OpId::none)) return;
      event.action = MemoryAction::out_of_memory;
      event.address = Addr{};
      events.push_back(event);
      return;
    }
    placed_[event.address] = {row->second->address, event.bytes};
    event.address = row->second->address;
    if (owns_segments_)
      events.push_back(segment_event({index, MemoryAction::segment_allocate, event.address, event.bytes}, event));
    events.push_back(event);
  }

  void free(MemoryEvent event, std::uint32_t index, std::vector<MemoryEvent>& events) {
    const auto placed = placed_.find(event.address);
    if (placed == placed_.end()) return;  // allocated before the events, or never
    event.address = placed->second.address;
    events.push_back(event);
    if (completes_) {
      event.action = MemoryAction::free_completed;
      events.push_back(event);
    }
    if (event.action != MemoryAction::free_completed) return;
    if (owns_segments_)
      events.push_back(segment_event({index, MemoryAction::segment_free, event.address, placed->second.bytes}, event));
    placed_.erase(placed);
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
  std::span<const Picos> times_;
  bool completes_;
  bool owns_segments_ = run_.policy == ideal_policy;  // each block
  std::map<std::uint32_t, const AllocationRow*> rows_;
  std::map<Addr, Placed> placed_;  // by the trace's address
  std::map<Addr, Bytes> asked_;    // at the end, by address
};

}  // namespace

Trace placed_snapshot(Trace trace, std::span<const AllocationStreamResult> runs, std::span<const Picos> times) {
  bool requests = false, completions = false;
  for (const MemoryEvent& event : trace.memory_events) {
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
