#include "sim/replay/replayed_trace.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

void append_change(std::vector<MemoryEvent>& events, const MemoryPoint& point, Bytes change, MemoryAction grown,
                   MemoryAction shrunk) {
  if (change == Bytes(0)) return;
  MemoryEvent event;
  event.time = point.time;
  event.bytes = change > Bytes(0) ? change : -change;
  event.total_allocated = point.allocated;
  event.total_reserved = point.reserved;
  event.action = change > Bytes(0) ? grown : shrunk;
  events.push_back(event);
}

std::vector<MemoryEvent> events_of(const std::vector<MemoryPoint>& timeline) {
  std::vector<MemoryEvent> events;
  MemoryPoint before;
  for (const MemoryPoint& point : timeline) {
    append_change(events, point, point.reserved - before.reserved, MemoryAction::segment_allocate,
                  MemoryAction::segment_free);
    append_change(events, point, point.allocated - before.allocated, MemoryAction::allocate,
                  MemoryAction::free_completed);
    before = point;
  }
  return events;
}

void set_times(Ops& ops, const Result& result) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Picos start = i < result.op_start.size() ? result.op_start[i] : unknown_time;
    const Picos end = i < result.op_end.size() ? result.op_end[i] : unknown_time;
    const bool replayed = start != unknown_time && end != unknown_time && end >= start;
    ops.start[i] = replayed ? start : unknown_time;
    ops.duration[i] = replayed ? end - start : unknown_time;
  }
}

}  // namespace

Trace replayed_trace(const Trace& trace, const Result& result) {
  const std::size_t count = trace.ops.size();
  SPILLWAY_ASSERT(result.op_start.size() == result.op_end.size());
  SPILLWAY_ASSERT(result.op_start.empty() || result.op_start.size() == count);
  Trace replayed = trace;
  set_times(replayed.ops, result);
  replayed.spans = Spans();
  std::fill(replayed.ops.span.begin(), replayed.ops.span.end(), SpanId::none);
  replayed.memory_events = events_of(result.memory.timeline);
  replayed.capture_fit = CaptureFit();
  replayed.time_base_ns = 0;
  if (result.steps.size() == trace.steps.size()) {
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
      replayed.steps[i].start = result.steps[i].begin;
      replayed.steps[i].duration = result.steps[i].span();
    }
  } else {
    replayed.steps.clear();
    std::fill(replayed.ops.step.begin(), replayed.ops.step.end(), no_index16);
  }
  if (!result.op_start.empty()) replayed.set(Capability::times);
  return replayed;
}

}  // namespace spillway::sim
