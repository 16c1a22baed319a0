#include "planners/order/roam_branches.h"

#include <algorithm>
#include <limits>

namespace spillway::planners {
namespace {

constexpr OperatorIndex no_end = std::numeric_limits<OperatorIndex>::max();  // not looked at yet
constexpr OperatorIndex many_ends = std::numeric_limits<OperatorIndex>::max() - 1;

// The one end that each operator leads to.
std::vector<OperatorIndex> ends_of(const RoamDag& dag, const std::vector<OperatorIndex>& order) {
  std::vector<OperatorIndex> end(dag.operators(), no_end);
  for (std::size_t i = order.size(); i-- > 0;) {
    const OperatorIndex op = order[i];
    if (dag.next(op).empty()) end[op] = op;
    for (const OperatorIndex follower : dag.next(op))
      end[op] = end[op] == no_end || end[op] == end[follower] ? end[follower] : many_ends;
  }
  return end;
}

// Bytes that live over each step: made before it, read after it, by the operators that count.
std::vector<std::int64_t> bytes_over(const OrderGraph& graph, const std::vector<std::size_t>& step,
                                     const std::vector<bool>& counts) {
  std::vector<std::int64_t> over(step.size() + 1, 0);
  for (const OrderTensor& tensor : graph.tensors) {
    std::size_t last = step[tensor.source];
    for (const OperatorIndex sink : tensor.sinks)
      if (counts[sink]) last = std::max(last, step[sink]);
    if (!counts[tensor.source] || last <= step[tensor.source] + 1) continue;
    over[step[tensor.source] + 1] += tensor.size;
    over[last] -= tensor.size;
  }
  for (std::size_t i = 1; i < over.size(); ++i) over[i] += over[i - 1];
  return over;
}

// The operators of a longest way through those that count, first to last.
std::vector<OperatorIndex> longest_way(const RoamDag& dag, const std::vector<OperatorIndex>& order,
                                       const std::vector<bool>& counts) {
  std::vector<std::int64_t> left(dag.operators(), 0);  // operators of the longest way on from each
  OperatorIndex start = no_end;
  for (std::size_t i = order.size(); i-- > 0;) {
    const OperatorIndex op = order[i];
    if (!counts[op]) continue;
    left[op] = 1;
    for (const OperatorIndex follower : dag.next(op)) left[op] = std::max(left[op], left[follower] + 1);
    if (start == no_end || left[op] >= left[start]) start = op;
  }
  std::vector<OperatorIndex> way;
  while (start != no_end) {
    way.push_back(start);
    const OperatorIndex from = start;
    start = no_end;
    for (const OperatorIndex follower : dag.next(from))
      if (left[follower] > 0 && left[follower] + 1 == left[from]) start = follower;
  }
  return way;
}

OperatorIndex find_loss(const OrderGraph& graph, const RoamDag& dag, const std::vector<OperatorIndex>& order,
                        const std::vector<std::size_t>& step, const std::vector<OperatorIndex>& end) {
  // Those with several ends that wait for something: without starts and updates, nothing but forward and backward.
  std::vector<bool> core(dag.operators());
  for (OperatorIndex op = 0; op < dag.operators(); ++op) core[op] = end[op] == many_ends && !dag.previous(op).empty();
  if (std::find(core.begin(), core.end(), true) == core.end()) core.assign(dag.operators(), true);
  const std::vector<std::int64_t> over = bytes_over(graph, step, core);
  std::vector<std::int64_t> made(dag.operators(), 0);
  for (const OrderTensor& tensor : graph.tensors) made[tensor.source] += tensor.size;
  const std::vector<OperatorIndex> way = longest_way(dag, order, core);
  OperatorIndex best = way.front();
  for (const OperatorIndex op : way)
    if (over[step[op]] > over[step[best]] || (over[step[op]] == over[step[best]] && made[op] < made[best])) best = op;
  return best;
}

std::vector<bool> find_updates(const OrderGraph& graph, const std::vector<OperatorIndex>& order,
                               const std::vector<std::size_t>& step, const std::vector<OperatorIndex>& end,
                               std::size_t loss) {
  std::vector<bool> reads_forward(order.size(), false), update(order.size(), false);
  for (const OrderTensor& tensor : graph.tensors) {
    if (tensor.size == 0 || step[tensor.source] > loss) continue;
    for (const OperatorIndex sink : tensor.sinks) reads_forward[sink] = true;
  }
  for (std::size_t i = order.size(); i-- > loss + 1;) {
    const OperatorIndex op = order[i];
    if (end[op] == many_ends || reads_forward[op]) break;
    update[op] = true;
  }
  return update;
}

}  // namespace

RoamBranches find_branches(const OrderGraph& graph, const RoamDag& dag) {
  RoamBranches found;
  const std::vector<OperatorIndex> order = legal_order(graph);
  if (order.empty()) return found;
  std::vector<std::size_t> step(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) step[order[i]] = i;
  const std::vector<OperatorIndex> end = ends_of(dag, order);
  found.loss = find_loss(graph, dag, order, step, end);
  found.update = find_updates(graph, order, step, end, step[found.loss]);
  // Of each end the last operator outside that something of its branch reads: its gradient.
  std::vector<OperatorIndex> gradient(order.size(), no_end);
  std::vector<std::int64_t> bytes(order.size(), 0);
  for (const OrderTensor& tensor : graph.tensors) {
    if (tensor.size == 0 || found.update[tensor.source]) continue;
    for (const OperatorIndex sink : tensor.sinks) {
      if (!found.update[sink]) continue;
      const OperatorIndex e = end[sink];
      if (gradient[e] == no_end || step[tensor.source] > step[gradient[e]]) {
        gradient[e] = tensor.source;
        bytes[e] = 0;
      }
      if (gradient[e] == tensor.source) bytes[e] = std::max(bytes[e], tensor.size);
    }
  }
  for (const OperatorIndex op : order)
    if (gradient[op] != no_end) found.branches.push_back({op, gradient[op], bytes[op]});
  return found;
}

}  // namespace spillway::planners
