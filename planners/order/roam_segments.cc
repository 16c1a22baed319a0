#include "planners/order/roam_segments.h"

#include <algorithm>

namespace spillway::planners {

// An operator is a key point when all before it in some legal order lead to it, which they do when each has a follower
// at its step or before, and when all after it have something before them at its step or after.
std::vector<std::size_t> key_positions(const RoamDag& dag, const std::vector<OperatorIndex>& order) {
  const std::size_t n = order.size();
  std::vector<std::size_t> step(n);
  for (std::size_t i = 0; i < n; ++i) step[order[i]] = i;
  // Of all from a position on: the earliest step at which one's last predecessor runs; 0 stands before the first.
  std::vector<std::size_t> earliest(n + 1, n);
  for (std::size_t i = n; i-- > 0;) {
    std::size_t last = 0;
    for (const OperatorIndex before : dag.previous(order[i])) last = std::max(last, step[before] + 1);
    earliest[i] = std::min(earliest[i + 1], last);
  }
  std::vector<std::size_t> keys;
  std::size_t latest = 0;  // of all before a position: the latest step at which one's first follower runs
  for (std::size_t i = 0; i < n; ++i) {
    if (latest <= i && earliest[i + 1] >= i + 1) keys.push_back(i);
    std::size_t first = n;
    for (const OperatorIndex follower : dag.next(order[i])) first = std::min(first, step[follower]);
    latest = std::max(latest, first);
  }
  return keys;
}

RoamCutter::RoamCutter(const OrderGraph& graph, const std::vector<RoamDag::Added>& added,
                       const std::vector<OperatorIndex>& order)
    : graph_(graph),
      order_(order),
      step_(order.size()),
      in_(order.size()),
      out_(order.size()),
      added_before_(order.size()) {
  for (std::size_t i = 0; i < order.size(); ++i) step_[order[i]] = i;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    out_[graph.tensors[t].source].push_back(t);
    for (const OperatorIndex sink : graph.tensors[t].sinks) in_[sink].push_back(t);
  }
  for (const RoamDag::Added& edge : added) added_before_[edge.to].push_back(edge.from);
}

namespace {

// Operators nobody in a segment waits for come before the last, those that wait for nobody in it after operator 0.
void tie(std::vector<OrderTensor>& tensors, OperatorIndex last) {
  std::vector<bool> leads(last + 1U, false), waits(last + 1U, false);
  for (const OrderTensor& tensor : tensors) {
    leads[tensor.source] = leads[tensor.source] || !tensor.sinks.empty();
    for (const OperatorIndex sink : tensor.sinks) waits[sink] = true;
  }
  OrderTensor first{0, 0, {}};
  for (OperatorIndex op = 1; op < last; ++op) {
    if (!waits[op]) first.sinks.push_back(op);
    if (!leads[op]) tensors.push_back({op, 0, {last}});
  }
  tensors.push_back(first);
}

}  // namespace

RoamSegment RoamCutter::segment(std::size_t begin, std::size_t end) const {
  RoamSegment segment;
  OrderGraph& graph = segment.graph;
  const auto inside = [&](OperatorIndex op) { return step_[op] >= begin && step_[op] < end; };
  // Operator 0 has run before, the last one runs after; between them the segment in its order.
  const auto last = static_cast<OperatorIndex>(end - begin + 1);
  const auto local = [&](OperatorIndex op) { return static_cast<OperatorIndex>(step_[op] - begin + 1); };
  segment.operators.assign(end - begin + 2, no_operator);
  std::vector<std::size_t> tensors;
  for (std::size_t i = begin; i < end; ++i) {
    const OperatorIndex op = order_[i];
    segment.operators[local(op)] = op;
    tensors.insert(tensors.end(), in_[op].begin(), in_[op].end());
    tensors.insert(tensors.end(), out_[op].begin(), out_[op].end());
    for (const OperatorIndex before : added_before_[op])
      if (inside(before)) graph.tensors.push_back({local(before), 0, {local(op)}});
  }
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  for (const std::size_t t : tensors) {
    const OrderTensor& tensor = graph_.tensors[t];
    OrderTensor part{inside(tensor.source) ? local(tensor.source) : 0, tensor.size, {}};
    bool lives_on = false;
    for (const OperatorIndex sink : tensor.sinks) {
      if (inside(sink)) part.sinks.push_back(local(sink));
      lives_on = lives_on || step_[sink] >= end;
    }
    if (lives_on) part.sinks.push_back(last);
    std::sort(part.sinks.begin(), part.sinks.end());
    graph.tensors.push_back(std::move(part));
  }
  tie(graph.tensors, last);
  graph.operators.resize(end - begin + 2);
  for (OperatorIndex op = 0; op <= last; ++op) graph.program_order.push_back(op);
  return segment;
}

}  // namespace spillway::planners
