#include "traces/span_tree.h"

#include <cstdint>

namespace spillway::traces {

std::vector<SpanId> span_parents(const Trace& trace) {
  const Spans& spans = trace.spans;
  std::vector<SpanId> parents(spans.size(), SpanId::none);
  std::vector<std::vector<std::uint32_t>> open(trace.lanes.size());
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (spans.start[i] == unknown_time || spans.duration[i] == unknown_time || spans.lane[i] == LaneId::none) continue;
    auto& stack = open[index_of(spans.lane[i])];
    const auto closed = [&](std::uint32_t outer) {
      const Picos end = spans.start[outer] + spans.duration[outer];
      return end < spans.start[i] || (end == spans.start[i] && spans.duration[i] > Picos(0));
    };
    while (!stack.empty() && closed(stack.back())) stack.pop_back();
    if (!stack.empty()) parents[i] = SpanId(stack.back());
    stack.push_back(i);
  }
  return parents;
}

bool is_autograd_node(std::string_view operator_name) {
  if (operator_name.starts_with("autograd::engine::evaluate_function")) return true;
  return operator_name.find("Backward") != std::string_view::npos && operator_name.find("::") == std::string_view::npos;
}

}  // namespace spillway::traces
