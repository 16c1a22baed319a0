#include "traces/reorder_ops.h"

#include <algorithm>
#include <vector>

#include "base/input_error.h"

namespace spillway::traces {

Trace with_ops_in(Trace trace, std::span<const OpId> order) {
  SPILLWAY_ASSERT(order.size() == trace.ops.size());
  std::vector<OpId> moved(order.size(), OpId::none);
  for (std::size_t k = 0; k < order.size(); ++k) moved[index_of(order[k])] = OpId(static_cast<std::uint32_t>(k));
  const auto now = [&](OpId op) { return op == OpId::none ? op : moved[index_of(op)]; };
  std::vector<OpRow> rows;
  rows.reserve(order.size());
  for (const OpId op : order) {
    rows.push_back(trace.op(op));
    rows.back().launched_by = now(rows.back().launched_by);
  }
  trace.ops = {};
  trace.ops.reserve(rows.size());
  for (const OpRow& row : rows) trace.append_op(row);
  const auto by_op = [](const auto& a, const auto& b) { return a.op < b.op; };
  for (Use& use : trace.uses) use.op = now(use.op);
  std::stable_sort(trace.uses.begin(), trace.uses.end(), by_op);
  for (Edge& edge : trace.edges) {
    edge.from = now(edge.from);
    edge.to = now(edge.to);
  }
  for (Edge& edge : trace.carried) {
    edge.from = now(edge.from);
    edge.to = now(edge.to);
  }
  std::stable_sort(trace.edges.begin(), trace.edges.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
  for (Sync& sync : trace.syncs) {
    sync.op = now(sync.op);
    sync.event = now(sync.event);
  }
  std::stable_sort(trace.syncs.begin(), trace.syncs.end(), by_op);
  for (UnexplainedWait& wait : trace.unexplained_waits) wait.op = now(wait.op);
  std::stable_sort(trace.unexplained_waits.begin(), trace.unexplained_waits.end(), by_op);
  for (Collective& collective : trace.collectives) collective.op = now(collective.op);
  std::stable_sort(trace.collectives.begin(), trace.collectives.end(), by_op);
  for (MemoryEvent& event : trace.memory_events) event.anchor = now(event.anchor);
  return trace;
}

}  // namespace spillway::traces
