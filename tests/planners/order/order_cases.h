// Graphs for the tests of orders, and their lowest peaks by brute force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planners/order/order_graph.h"

namespace spillway::planners {

inline OrderGraph graph_of(std::size_t operators, std::vector<OrderTensor> tensors) {
  OrderGraph graph;
  for (std::size_t i = 0; i < operators; ++i) {
    graph.operators.push_back("op" + std::to_string(i));
    graph.program_order.push_back(static_cast<OperatorIndex>(i));
  }
  graph.tensors = std::move(tensors);
  return graph;
}

// Operators in program order; each makes up to two tensors, read by up to three of the next `reach`.
inline OrderGraph random_graph(std::mt19937& random, std::size_t largest) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t n = 1 + below(largest), reach = 1 + below(6);
  std::vector<OrderTensor> tensors;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = below(8) == 0 ? 2 : 1; k-- > 0;) {
      OrderTensor tensor{static_cast<OperatorIndex>(i), static_cast<std::int64_t>(below(5) == 0 ? 0 : below(20)), {}};
      for (std::size_t s = below(4); s-- > 0;)
        if (const std::size_t sink = i + 1 + below(reach); sink < n)
          tensor.sinks.push_back(static_cast<OperatorIndex>(sink));
      std::sort(tensor.sinks.begin(), tensor.sinks.end());
      tensor.sinks.erase(std::unique(tensor.sinks.begin(), tensor.sinks.end()), tensor.sinks.end());
      tensors.push_back(tensor);
    }
  }
  return graph_of(n, std::move(tensors));
}

// The lowest peak by going through every downward-closed set in order of size; -1 if there are more than `most`.
inline std::int64_t brute_force(const OrderGraph& graph, std::size_t most) {
  const std::size_t n = graph.operators.size();
  std::vector<std::uint64_t> needs(n, 0);
  for (const OrderTensor& tensor : graph.tensors)
    for (const OperatorIndex sink : tensor.sinks) needs[sink] |= std::uint64_t{1} << tensor.source;
  const auto live_with = [&](std::uint64_t ran, std::size_t op) {
    std::int64_t live = 0;
    for (const OrderTensor& tensor : graph.tensors) {
      bool alive = tensor.source == op;
      if ((ran >> tensor.source & 1) != 0)
        for (const OperatorIndex sink : tensor.sinks) alive = alive || (ran >> sink & 1) == 0;
      if (alive) live += tensor.size;
    }
    return live;
  };
  std::map<std::uint64_t, std::int64_t> now{{0, 0}};
  for (std::size_t step = 0, seen = 0; step < n; ++step) {
    std::map<std::uint64_t, std::int64_t> next;
    for (const auto& [ran, peak] : now) {
      for (std::size_t op = 0; op < n; ++op) {
        if ((ran >> op & 1) != 0 || (needs[op] & ~ran) != 0) continue;
        const std::int64_t reached = std::max(peak, live_with(ran, op));
        const auto [entry, fresh] = next.try_emplace(ran | std::uint64_t{1} << op, reached);
        if (!fresh) entry->second = std::min(entry->second, reached);
      }
    }
    seen += next.size();
    if (seen > most) return -1;
    now = std::move(next);
  }
  return now.begin()->second;
}

}  // namespace spillway::planners
