#include "sim/replay/step_pace.h"

#include <algorithm>
#include <vector>

namespace spillway::sim {

Picos longest_rank_span(const Trace& trace, const Result& result) {
  struct Span {
    Picos begin = unknown_time, end{};
  };
  std::vector<Span> spans(std::max<std::size_t>(trace.rank_count, 1));
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (!is_device_work(trace.ops.kind[i]) || result.op_start[i] == unknown_time) continue;
    const OpId by = trace.ops.launched_by[i];
    if (!trace.steps.empty() && trace.ops.step[by == OpId::none ? i : index_of(by)] == no_index16) continue;
    const std::size_t rank = trace.lanes[index_of(trace.ops.lane[i])].rank;
    Span& span = spans[rank < spans.size() ? rank : 0];
    const bool first = span.begin == unknown_time || result.op_start[i] < span.begin;
    if (first && trace.ops.kind[i] == OpKind::kernel) span.begin = result.op_start[i];
    span.end = std::max(span.end, result.op_end[i]);
  }
  Picos longest{};
  for (const Span& span : spans)
    if (span.begin != unknown_time) longest = std::max(longest, span.end - span.begin);
  return longest;
}

Picos carried_pace(const Trace& trace, const Result& result) {
  Picos pace{};
  for (const Edge& edge : trace.carried) {
    const Picos end = result.op_end[index_of(edge.from)], start = result.op_start[index_of(edge.to)];
    if (end != unknown_time && start != unknown_time) pace = std::max(pace, end - start);
  }
  return pace;
}

}  // namespace spillway::sim
