#include "planners/order/order_links.h"

#include <algorithm>

namespace spillway::planners {

OrderLinks::Lists OrderLinks::lists_of(std::size_t count,
                                       const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  Lists lists{std::vector<std::uint32_t>(count + 1, 0), std::vector<std::uint32_t>(pairs.size())};
  for (const auto& [key, item] : pairs) ++lists.begin[key + 1];
  for (std::size_t i = 0; i < count; ++i) lists.begin[i + 1] += lists.begin[i];
  std::vector<std::uint32_t> next(lists.begin.begin(), lists.begin.end() - 1);
  for (const auto& [key, item] : pairs) lists.items[next[key]++] = item;
  return lists;
}

OrderLinks::OrderLinks(const OrderGraph& graph) : made_(graph.operators.size(), 0) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in, out, sinks;
  for (TensorIndex t = 0; t < graph.tensors.size(); ++t) {
    const OrderTensor& tensor = graph.tensors[t];
    source_.push_back(tensor.source);
    size_.push_back(tensor.size);
    made_[tensor.source] += tensor.size;
    out.emplace_back(tensor.source, t);
    for (const OperatorIndex sink : tensor.sinks) {
      in.emplace_back(sink, t);
      sinks.emplace_back(t, sink);
    }
  }
  in_ = lists_of(graph.operators.size(), in);
  out_ = lists_of(graph.operators.size(), out);
  sinks_ = lists_of(graph.tensors.size(), sinks);
  for (OperatorIndex op = 0; op < graph.operators.size(); ++op)
    root_.push_back(
        in_.of(op).empty() && !out_.of(op).empty() &&
        std::none_of(out_.of(op).begin(), out_.of(op).end(), [&](TensorIndex t) { return sinks_.of(t).empty(); }));
}

OrderState::OrderState(const OrderLinks& links)
    : links_(links), ran_(links.operators(), false), waiting_(links.operators(), 0), unread_(links.tensors()) {
  order_.reserve(links.operators());
  for (TensorIndex t = 0; t < links.tensors(); ++t) {
    unread_[t] = static_cast<std::uint32_t>(links.sinks(t).size());
    if (links.is_root(links.source(t))) continue;
    for (const OperatorIndex sink : links.sinks(t)) ++waiting_[sink];
  }
}

OrderState::Cost OrderState::cost(OperatorIndex op) const {
  Cost cost;
  std::int64_t freed = 0, roots = 0;
  for (const TensorIndex t : links_.in(op)) {
    if (unread_[t] == 1) freed += links_.size(t);
    const OperatorIndex source = links_.source(t);
    if (ran_[source]) continue;
    // A root that makes several tensors is counted at the first of them that is read here.
    bool counted = false;
    for (const TensorIndex other : links_.in(op)) {
      if (other == t) break;
      counted = counted || links_.source(other) == source;
    }
    if (counted) continue;
    roots += links_.made(source);
  }
  cost.rise = roots + links_.made(op);
  cost.net = roots + links_.made(op) - freed;
  for (const TensorIndex made : links_.out(op))
    if (unread_[made] == 0) cost.net -= links_.size(made);
  return cost;
}

void OrderState::step(OperatorIndex op) {
  ran_[op] = true;
  order_.push_back(op);
  live_ += links_.made(op);
  peak_ = std::max(peak_, live_);
  for (const TensorIndex t : links_.in(op))
    if (--unread_[t] == 0) live_ -= links_.size(t);
  const bool root = links_.is_root(op);
  for (const TensorIndex t : links_.out(op)) {
    if (unread_[t] == 0) live_ -= links_.size(t);
    if (root) continue;
    for (const OperatorIndex sink : links_.sinks(t)) --waiting_[sink];
  }
}

void OrderState::run(OperatorIndex op) {
  for (const TensorIndex t : links_.in(op))
    if (!ran_[links_.source(t)]) step(links_.source(t));
  step(op);
}

void OrderState::back_to(std::size_t length, std::int64_t peak) {
  while (order_.size() > length) {
    const OperatorIndex op = order_.back();
    order_.pop_back();
    ran_[op] = false;
    const bool root = links_.is_root(op);
    for (const TensorIndex t : links_.out(op)) {
      if (links_.sinks(t).empty()) live_ += links_.size(t);
      if (root) continue;
      for (const OperatorIndex sink : links_.sinks(t)) ++waiting_[sink];
    }
    for (const TensorIndex t : links_.in(op))
      if (unread_[t]++ == 0) live_ += links_.size(t);
    live_ -= links_.made(op);
  }
  peak_ = peak;
}

}  // namespace spillway::planners
