#include "planners/order/roam_dag.h"

#include <algorithm>

namespace spillway::planners {

RoamDag::RoamDag(const OrderGraph& graph) : next_(graph.operators.size()), previous_(graph.operators.size()) {
  for (const OrderTensor& tensor : graph.tensors) {
    for (const OperatorIndex sink : tensor.sinks) {
      next_[tensor.source].push_back(sink);
      previous_[sink].push_back(tensor.source);
    }
  }
}

bool RoamDag::add(OperatorIndex from, OperatorIndex to) {
  if (reaches(to, from)) return false;
  next_[from].push_back(to);
  previous_[to].push_back(from);
  added_.push_back({from, to});
  return true;
}

bool RoamDag::reaches(OperatorIndex from, OperatorIndex to) const { return reached(next_, from)[to]; }

std::vector<bool> RoamDag::ancestors(OperatorIndex op) const { return reached(previous_, op); }

std::vector<bool> RoamDag::descendants(OperatorIndex op) const { return reached(next_, op); }

std::vector<bool> RoamDag::reached(const Lists& links, OperatorIndex from) {
  std::vector<bool> seen(links.size(), false);
  std::vector<OperatorIndex> open{from};
  seen[from] = true;
  while (!open.empty()) {
    const OperatorIndex op = open.back();
    open.pop_back();
    for (const OperatorIndex next : links[op]) {
      if (seen[next]) continue;
      seen[next] = true;
      open.push_back(next);
    }
  }
  return seen;
}

std::vector<OperatorIndex> RoamDag::any_order() const {
  std::vector<std::size_t> missing(operators());
  std::vector<OperatorIndex> order;
  for (OperatorIndex op = 0; op < operators(); ++op) {
    missing[op] = previous_[op].size();
    if (missing[op] == 0) order.push_back(op);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const OperatorIndex follower : next_[order[i]])
      if (--missing[follower] == 0) order.push_back(follower);
  return order;
}

std::vector<std::int64_t> RoamDag::forward_levels() const {
  std::vector<std::int64_t> level(operators(), 1);
  for (const OperatorIndex op : any_order())
    for (const OperatorIndex follower : next_[op]) level[follower] = std::max(level[follower], level[op] + 1);
  return level;
}

std::vector<std::int64_t> RoamDag::backward_levels() const {
  std::vector<std::int64_t> level(operators(), 1);
  const std::vector<OperatorIndex> order = any_order();
  for (std::size_t i = order.size(); i-- > 0;)
    for (const OperatorIndex follower : next_[order[i]])
      level[order[i]] = std::max(level[order[i]], level[follower] + 1);
  return level;
}

}  // namespace spillway::planners
