#include "planners/order/order_graph.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace spillway::planners {
namespace {

std::vector<std::size_t> steps_of(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  std::vector<std::size_t> step(graph.operators.size());
  for (std::size_t i = 0; i < order.size(); ++i) step[order[i]] = i;
  return step;
}

}  // namespace

std::vector<std::int64_t> live_bytes(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  const std::vector<std::size_t> step = steps_of(graph, order);
  std::vector<std::int64_t> live(order.size() + 1, 0);
  for (const OrderTensor& tensor : graph.tensors) {
    std::size_t last = step[tensor.source];
    live[last] += tensor.size;
    for (const OperatorIndex sink : tensor.sinks) last = std::max(last, step[sink]);
    live[last + 1] -= tensor.size;
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

std::int64_t peak_of_order(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  const std::vector<std::int64_t> live = live_bytes(graph, order);
  return graph.constant_bytes + (live.empty() ? 0 : *std::max_element(live.begin(), live.end()));
}

std::vector<OperatorIndex> legal_order(const OrderGraph& graph) {
  const std::size_t n = graph.operators.size();
  const std::vector<std::size_t> step = steps_of(graph, graph.program_order);
  std::vector<std::vector<OperatorIndex>> followers(n);
  std::vector<std::size_t> missing(n, 0);
  for (const OrderTensor& tensor : graph.tensors) {
    for (const OperatorIndex sink : tensor.sinks) {
      followers[tensor.source].push_back(sink);
      ++missing[sink];
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;  // steps in the program
  for (std::size_t op = 0; op < n; ++op)
    if (missing[op] == 0) ready.push(step[op]);
  std::vector<OperatorIndex> order;
  while (!ready.empty()) {
    order.push_back(graph.program_order[ready.top()]);
    ready.pop();
    for (const OperatorIndex next : followers[order.back()])
      if (--missing[next] == 0) ready.push(step[next]);
  }
  return order;
}

std::size_t broken_dependencies(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  const std::vector<std::size_t> step = steps_of(graph, order);
  std::size_t broken = 0;
  for (const OrderTensor& tensor : graph.tensors)
    for (const OperatorIndex sink : tensor.sinks) broken += step[sink] < step[tensor.source] ? 1 : 0;
  return broken;
}

}  // namespace spillway::planners
