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

void add_memory(const Trace& trace, TraceSummary& summary) {
  std::map<std::int16_t, Bytes> live;
  const bool two_frees = std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                                     [](const MemoryEvent& e) { return e.action == MemoryAction::free_completed; });
  const MemoryAction freed = two_frees ? MemoryAction::free_completed : MemoryAction::free_requested;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0) continue;
    ++summary.device_memory_events;
    summary.peak_reserved_bytes = std::max(summary.peak_reserved_bytes, event.total_reserved);
    Bytes& now = live[event.device];
    if (event.total_allocated >= Bytes(0))
      now = event.total_allocated;
    else if (event.action == MemoryAction::allocate)
      now += event.bytes;
    else if (event.action == freed)
      now -= event.bytes;
    summary.peak_allocated_bytes = std::max(summary.peak_allocated_bytes, now);
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
