#include "planners/order/order_bound.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace spillway::planners {
namespace {

std::int64_t neighbours_bound(const OrderLinks& links) {
  std::int64_t bound = 0;
  for (OperatorIndex op = 0; op < links.operators(); ++op) {
    std::int64_t live = links.made(op);
    for (const TensorIndex t : links.in(op)) live += links.size(t);
    bound = std::max(bound, live);
  }
  return bound;
}

std::vector<OperatorIndex> any_order(const OrderLinks& links) {
  std::vector<std::size_t> missing(links.operators());
  std::vector<OperatorIndex> order;
  for (OperatorIndex op = 0; op < links.operators(); ++op) {
    missing[op] = links.in(op).size();
    if (missing[op] == 0) order.push_back(op);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const TensorIndex t : links.out(order[i]))
      for (const OperatorIndex sink : links.sinks(t))
        if (--missing[sink] == 0) order.push_back(sink);
  return order;
}

using Word = std::uint64_t;

// Rows of bits, one per tensor of positive size: is it of a source in an operator's ancestry (or the operator itself)?
// Does the operator or a descendant read it? Worked through in blocks of tensors, so that memory stays small.
class Block {
 public:
  static constexpr std::size_t words = 8;
  Block(const OrderLinks& links, const std::vector<OperatorIndex>& order)
      : links_(links), order_(order), born_(links.operators() * words), needed_(links.operators() * words) {}

  // Adds to `live` of each operator the forced tensors among the `count` <= 512 given.
  void add(const TensorIndex* tensors, std::size_t count, std::vector<std::int64_t>& live) {
    std::fill(born_.begin(), born_.end(), 0);
    std::fill(needed_.begin(), needed_.end(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      set(born_, links_.source(tensors[i]), i);
      for (const OperatorIndex sink : links_.sinks(tensors[i])) set(needed_, sink, i);
    }
    for (const OperatorIndex op : order_)
      for (const TensorIndex t : links_.in(op)) join(born_, op, links_.source(t));
    for (std::size_t k = order_.size(); k-- > 0;)
      for (const TensorIndex t : links_.out(order_[k]))
        for (const OperatorIndex sink : links_.sinks(t)) join(needed_, order_[k], sink);
    for (OperatorIndex op = 0; op < links_.operators(); ++op) {
      for (const TensorIndex t : links_.out(op)) unset(op, tensors, count, t);
      for (std::size_t w = 0; w < words; ++w)
        for (Word both = born_[op * words + w] & needed_[op * words + w]; both != 0; both &= both - 1)
          live[op] += links_.size(tensors[w * 64 + static_cast<std::size_t>(std::countr_zero(both))]);
    }
  }

 private:
  static void set(std::vector<Word>& rows, OperatorIndex op, std::size_t bit) {
    rows[op * words + bit / 64] |= Word{1} << (bit % 64);
  }
  static void join(std::vector<Word>& rows, OperatorIndex to, OperatorIndex from) {
    for (std::size_t w = 0; w < words; ++w) rows[to * words + w] |= rows[from * words + w];
  }
  // What an operator makes is counted apart.
  void unset(OperatorIndex op, const TensorIndex* tensors, std::size_t count, TensorIndex tensor) {
    const TensorIndex* place = std::lower_bound(tensors, tensors + count, tensor);
    if (place == tensors + count || *place != tensor) return;
    const auto bit = static_cast<std::size_t>(place - tensors);
    born_[op * words + bit / 64] &= ~(Word{1} << (bit % 64));
  }

  const OrderLinks& links_;
  const std::vector<OperatorIndex>& order_;
  std::vector<Word> born_, needed_;
};

}  // namespace

std::int64_t forced_live_bound(const OrderLinks& links, std::size_t largest) {
  if (links.operators() > largest) return neighbours_bound(links);
  const std::vector<OperatorIndex> order = any_order(links);
  std::vector<TensorIndex> tensors;
  for (TensorIndex t = 0; t < links.tensors(); ++t)
    if (links.size(t) > 0) tensors.push_back(t);
  std::vector<std::int64_t> live(links.operators());
  for (OperatorIndex op = 0; op < links.operators(); ++op) live[op] = links.made(op);
  Block block(links, order);
  for (std::size_t first = 0; first < tensors.size(); first += Block::words * 64)
    block.add(tensors.data() + first, std::min(Block::words * 64, tensors.size() - first), live);
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

}  // namespace spillway::planners
