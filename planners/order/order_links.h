// An order graph's adjacency, both ways, in flat arrays; and the state of a schedule that is being built.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/order/order_graph.h"

namespace spillway::planners {

using TensorIndex = std::uint32_t;

class OrderLinks {
 public:
  explicit OrderLinks(const OrderGraph& graph);

  [[nodiscard]] std::size_t operators() const { return in_.begin.size() - 1; }
  [[nodiscard]] std::size_t tensors() const { return size_.size(); }
  // Tensors an operator reads or waits for; those it makes; a tensor's sinks.
  [[nodiscard]] std::span<const TensorIndex> in(OperatorIndex op) const { return in_.of(op); }
  [[nodiscard]] std::span<const TensorIndex> out(OperatorIndex op) const { return out_.of(op); }
  [[nodiscard]] std::span<const OperatorIndex> sinks(TensorIndex tensor) const { return sinks_.of(tensor); }
  [[nodiscard]] OperatorIndex source(TensorIndex tensor) const { return source_[tensor]; }
  [[nodiscard]] std::int64_t size(TensorIndex tensor) const { return size_[tensor]; }
  // Bytes an operator makes.
  [[nodiscard]] std::int64_t made(OperatorIndex op) const { return made_[op]; }
  // Waits for nothing, and all it makes is read: such an operator may as well run just before its first reader. (One
  // that also makes something nobody reads may be better run early.)
  [[nodiscard]] bool is_root(OperatorIndex op) const { return root_[op]; }

 private:
  struct Lists {
    std::vector<std::uint32_t> begin, items;
    [[nodiscard]] std::span<const std::uint32_t> of(std::size_t i) const {
      return {items.data() + begin[i], items.data() + begin[i + 1]};
    }
  };
  static Lists lists_of(std::size_t count, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs);

  Lists in_, out_, sinks_;
  std::vector<OperatorIndex> source_;
  std::vector<std::int64_t> size_, made_;
  std::vector<bool> root_;
};

// State of a schedule: what has run so far, what that leaves alive, and a way back.
class OrderState {
 public:
  explicit OrderState(const OrderLinks& links);

  [[nodiscard]] bool ran(OperatorIndex op) const { return ran_[op]; }
  // Has not run, and everything it waits for has, except roots.
  [[nodiscard]] bool ready(OperatorIndex op) const { return !ran_[op] && waiting_[op] == 0; }
  [[nodiscard]] std::int64_t live() const { return live_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] const std::vector<OperatorIndex>& order() const { return order_; }
  [[nodiscard]] std::uint32_t unread(TensorIndex tensor) const { return unread_[tensor]; }
  // Bytes alive while the operator and the roots it still waits for run now, above what is alive; and the change they
  // leave.
  struct Cost {
    std::int64_t rise = 0, net = 0;
  };
  [[nodiscard]] Cost cost(OperatorIndex op) const;
  // Runs a ready operator, and before it the roots it waits for.
  void run(OperatorIndex op);
  // Takes back what ran after the first `length` operators. The peak is set to what it was given.
  void back_to(std::size_t length, std::int64_t peak);

 private:
  void step(OperatorIndex op);
  const OrderLinks& links_;
  std::vector<bool> ran_;
  std::vector<std::uint32_t> waiting_, unread_;  // waiting_: tensors of sources that are not roots
  std::vector<OperatorIndex> order_;
  std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace spillway::planners
