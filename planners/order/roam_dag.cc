#include "planners/order/roam_dag.h"

#include <algorithm>
#include <set>

namespace spillway::planners {

RoamDag::RoamDag(const OrderGraph& graph) : next_(graph.operators.size()), previous_(graph.operators.size()) {
  for (const OrderTensor& tensor : graph.tensors) {
    for (const OperatorIndex sink : tensor.sinks) {
      next_[tensor.source].push_back(sink);
      previous_[sink].push_back(tensor.source);
    }
  }
  place_.resize(operators());
  const std::vector<OperatorIndex> order = any_order();
  for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = i;
}

bool RoamDag::add(OperatorIndex from, OperatorIndex to) {
  if (from == to) return false;
  if (const std::size_t first = place_[to], last = place_[from]; first < last) {
    const auto after = reached_within(next_, to, [&](OperatorIndex op) { return place_[op] <= last; });
    if (std::find(after.begin(), after.end(), from) != after.end()) return false;
    std::vector<OperatorIndex> moved =
        reached_within(previous_, from, [&](OperatorIndex op) { return place_[op] >= first; });
    const auto by_place = [this](OperatorIndex a, OperatorIndex b) { return place_[a] < place_[b]; };
    std::sort(moved.begin(), moved.end(), by_place);
    const auto behind = static_cast<std::ptrdiff_t>(moved.size());
    moved.insert(moved.end(), after.begin(), after.end());
    std::sort(moved.begin() + behind, moved.end(), by_place);
    std::vector<std::size_t> places;  // theirs, given out anew
    for (const OperatorIndex op : moved) places.push_back(place_[op]);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < moved.size(); ++i) place_[moved[i]] = places[i];
  }
  next_[from].push_back(to);
  previous_[to].push_back(from);
  added_.push_back({from, to});
  return true;
}

bool RoamDag::reaches(OperatorIndex from, OperatorIndex to) const { return reached(next_, from)[to]; }

std::vector<bool> RoamDag::ancestors(OperatorIndex op) const { return reached(previous_, op); }

std::vector<bool> RoamDag::descendants(OperatorIndex op) const { return reached(next_, op); }

template <class Within>
std::vector<OperatorIndex> RoamDag::reached_within(const Lists& links, OperatorIndex from, const Within& within) {
  std::set<OperatorIndex> seen{from};
  std::vector<OperatorIndex> all{from};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const OperatorIndex next : links[all[i]])
      if (within(next) && seen.insert(next).second) all.push_back(next);
  return all;
}

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
