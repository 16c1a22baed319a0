#include "planners/order/order_greedy.h"

#include <algorithm>
#include <tuple>

namespace spillway::planners {
namespace {

struct Running {
  std::vector<std::size_t> missing, unread;
  std::int64_t live = 0, peak = 0;
};

// Whether the peak is exceeded, then by how much or what is left alive.
std::tuple<bool, std::int64_t> key_of(const OrderLinks& links, const Running& running, OperatorIndex op) {
  const std::int64_t level = running.live + links.made(op);
  if (level > running.peak) return {true, level};
  std::int64_t left = level;
  for (const TensorIndex t : links.in(op))
    if (running.unread[t] == 1) left -= links.size(t);
  for (const TensorIndex t : links.out(op))
    if (links.sinks(t).empty()) left -= links.size(t);
  return {false, left};
}

void run(const OrderLinks& links, Running& running, OperatorIndex op) {
  running.live += links.made(op);
  running.peak = std::max(running.peak, running.live);
  for (const TensorIndex t : links.in(op))
    if (--running.unread[t] == 0) running.live -= links.size(t);
  for (const TensorIndex t : links.out(op))
    if (links.sinks(t).empty()) running.live -= links.size(t);
}

}  // namespace

std::vector<OperatorIndex> greedy_order(const OrderLinks& links, std::span<const OperatorIndex> program_order) {
  Running running;
  std::vector<std::size_t> position(links.operators());
  std::vector<OperatorIndex> ready, order;
  for (std::size_t i = 0; i < program_order.size(); ++i) position[program_order[i]] = i;
  for (TensorIndex t = 0; t < links.tensors(); ++t) running.unread.push_back(links.sinks(t).size());
  for (OperatorIndex op = 0; op < links.operators(); ++op) {
    running.missing.push_back(links.in(op).size());
    if (running.missing[op] == 0) ready.push_back(op);
  }
  while (!ready.empty()) {
    const auto best = std::min_element(ready.begin(), ready.end(), [&](OperatorIndex a, OperatorIndex b) {
      return std::tuple_cat(key_of(links, running, a), std::tuple(position[a])) <
             std::tuple_cat(key_of(links, running, b), std::tuple(position[b]));
    });
    const OperatorIndex op = *best;
    *best = ready.back();
    ready.pop_back();
    run(links, running, op);
    order.push_back(op);
    for (const TensorIndex t : links.out(op))
      for (const OperatorIndex sink : links.sinks(t))
        if (--running.missing[sink] == 0) ready.push_back(sink);
  }
  return order;
}

}  // namespace spillway::planners
