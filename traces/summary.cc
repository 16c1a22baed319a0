#include "traces/summary.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway::traces {
namespace {

using Interval = std::pair<Picos, Picos>;  // start, end

StepSummary summarize_step(const Trace& trace, const Step& step, std::vector<Interval>& work) {
  StepSummary summary{.name = std::string(trace.strings.text(step.name)), .duration = step.duration};
  std::sort(work.begin(), work.end());
  Picos covered = unknown_time;
  for (const auto& [start, end] : work) {
    summary.gpu_work += end - start;
    if (end <= covered) continue;
    summary.gpu_busy += end - std::max(start, covered);
    covered = end;
  }
  return summary;
}

void add_steps(const Trace& trace, TraceSummary& summary) {
  std::vector<std::vector<Interval>> work(trace.steps.size());
  const Ops& ops = trace.ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_device_work(ops.kind[i]) && ops.step[i] != no_index16 && ops.start[i] != unknown_time &&
        ops.duration[i] != unknown_time)
      work[ops.step[i]].emplace_back(ops.start[i], ops.start[i] + ops.duration[i]);
  for (std::size_t i = 0; i < work.size(); ++i) summary.steps.push_back(summarize_step(trace, trace.steps[i], work[i]));
}

// What a device holds.
struct Held {
  Bytes allocated{}, reserved{};
};

bool takes_segment(MemoryAction action) {
  return action == MemoryAction::segment_allocate || action == MemoryAction::segment_map;
}
bool gives_segment(MemoryAction action) {
  return action == MemoryAction::segment_free || action == MemoryAction::segment_unmap;
}

// Before the first event, by device: what a snapshot holds at its end less what its events allocated and took. Nothing
// where there are no segments, since then nobody knows.
std::map<std::int16_t, Held> held_before(const Trace& trace, MemoryAction freed) {
  std::map<std::int16_t, Held> held;
  for (const MemorySegment& segment : trace.memory_segments) {
    Held& now = held[segment.device];
    now.reserved += segment.total;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const MemoryBlock& block = trace.memory_blocks[segment.first_block + i];
      const bool counts = block.state == BlockState::allocated ||
                          (block.state == BlockState::pending_free && freed == MemoryAction::free_completed);
      if (counts) now.allocated += trace.memory_size_is_requested ? block.requested : block.size;
    }
  }
  for (const MemoryEvent& event : trace.memory_events) {
    const auto found = held.find(event.device);
    if (found == held.end()) continue;
    Held& now = found->second;
    if (event.action == MemoryAction::allocate) now.allocated -= event.bytes;
    if (event.action == freed) now.allocated += event.bytes;
    if (takes_segment(event.action)) now.reserved -= event.bytes;
    if (gives_segment(event.action)) now.reserved += event.bytes;
  }
  for (auto& [device, now] : held) now = {std::max(now.allocated, Bytes(0)), std::max(now.reserved, Bytes(0))};
  return held;
}

void add_memory(const Trace& trace, TraceSummary& summary) {
  const bool two_frees = std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                                     [](const MemoryEvent& e) { return e.action == MemoryAction::free_completed; });
  const MemoryAction freed = two_frees ? MemoryAction::free_completed : MemoryAction::free_requested;
  std::map<std::int16_t, Held> held = held_before(trace, freed);
  const bool has_segments = !trace.memory_segments.empty();
  const auto note = [&](const Held& now) {
    summary.peak_allocated_bytes = std::max(summary.peak_allocated_bytes, now.allocated);
    if (has_segments) summary.peak_reserved_bytes = std::max(summary.peak_reserved_bytes, now.reserved);
  };
  for (const auto& [device, now] : held) note(now);
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0) continue;
    ++summary.device_memory_events;
    summary.peak_reserved_bytes = std::max(summary.peak_reserved_bytes, event.total_reserved);
    Held& now = held[event.device];
    if (event.total_allocated >= Bytes(0))
      now.allocated = event.total_allocated;
    else if (event.action == MemoryAction::allocate)
      now.allocated += event.bytes;
    else if (event.action == freed)
      now.allocated -= event.bytes;
    if (takes_segment(event.action)) now.reserved += event.bytes;
    if (gives_segment(event.action)) now.reserved -= event.bytes;
    note(now);
  }
}

}  // namespace

TraceSummary summarize(const Trace& trace) {
  TraceSummary summary;
  if (!trace.provenance.empty()) summary.format = trace.provenance.front().format;
  for (int i = 0; i < capability_count; ++i)
    if (const auto capability = static_cast<Capability>(i); trace.has(capability))
      summary.capabilities.push_back(capability);
  summary.events = trace.source_events;
  summary.ops = trace.ops.size();
  summary.tensors = trace.tensors.size();
  summary.memory_events = trace.memory_events.size();
  summary.kernels =
      static_cast<std::uint64_t>(std::count_if(trace.ops.kind.begin(), trace.ops.kind.end(), [](OpKind kind) {
        return kind == OpKind::kernel || kind == OpKind::collective;
      }));
  add_memory(trace, summary);
  add_steps(trace, summary);
  summary.findings = trace.findings;
  return summary;
}

}  // namespace spillway::traces
