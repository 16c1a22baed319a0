#include "planners/order/order_check.h"

#include <algorithm>

namespace spillway::planners {
namespace {

struct CheckReader {
  std::vector<std::size_t> reads, makes;  // tensors
};

std::vector<CheckReader> readers_of(const OrderGraph& graph) {
  std::vector<CheckReader> readers(graph.operators.size());
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    readers[graph.tensors[t].source].makes.push_back(t);
    for (const OperatorIndex sink : graph.tensors[t].sinks) readers[sink].reads.push_back(t);
  }
  return readers;
}

}  // namespace

OrderVerdict check_order(const OrderGraph& graph, std::span<const OperatorIndex> order) {
  OrderVerdict verdict;
  const std::vector<CheckReader> readers = readers_of(graph);
  std::vector<bool> ran(graph.operators.size(), false), made(graph.tensors.size(), false);
  std::vector<std::size_t> unread(graph.tensors.size());
  for (std::size_t t = 0; t < unread.size(); ++t) unread[t] = graph.tensors[t].sinks.size();
  std::int64_t live = graph.constant_bytes;
  verdict.peak_bytes = live;
  for (const OperatorIndex op : order) {
    if (op >= ran.size()) return {"an operator that does not exist: " + std::to_string(op), 0};
    if (ran[op]) return {"operator \"" + graph.operators[op] + "\" runs twice", 0};
    ran[op] = true;
    for (const std::size_t t : readers[op].reads) {
      if (made[t]) continue;
      return {"operator \"" + graph.operators[op] + "\" runs before \"" + graph.operators[graph.tensors[t].source] +
                  "\", which it needs",
              0};
    }
    for (const std::size_t t : readers[op].makes) {
      made[t] = true;
      live += graph.tensors[t].size;
    }
    verdict.peak_bytes = std::max(verdict.peak_bytes, live);
    for (const std::size_t t : readers[op].reads)
      if (--unread[t] == 0) live -= graph.tensors[t].size;
    for (const std::size_t t : readers[op].makes)
      if (graph.tensors[t].sinks.empty()) live -= graph.tensors[t].size;
  }
  if (order.size() != ran.size()) return {"some operators do not run", 0};
  return verdict;
}

}  // namespace spillway::planners
