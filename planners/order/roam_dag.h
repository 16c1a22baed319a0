// Who must run before whom, with dependencies added one by one: what ROAM's scheduling of weight updates works on.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/order/order_graph.h"

namespace spillway::planners {

class RoamDag {
 public:
  // The graph's own dependencies, of tensors with and without bytes. Precondition: no cycle.
  explicit RoamDag(const OrderGraph& graph);

  [[nodiscard]] std::size_t operators() const { return next_.size(); }
  [[nodiscard]] const std::vector<OperatorIndex>& next(OperatorIndex op) const { return next_[op]; }
  [[nodiscard]] const std::vector<OperatorIndex>& previous(OperatorIndex op) const { return previous_[op]; }

  // Makes `to` wait for `from`; false, and nothing done, where `from` already waits for `to` or they are one. At most
  // n + m: operators between the two in an order that is kept (Pearce and Kelly, ACM JEA 11, 2006).
  bool add(OperatorIndex from, OperatorIndex to);
  // Is there a way from one to the other (also from an operator to itself)? n + m.
  [[nodiscard]] bool reaches(OperatorIndex from, OperatorIndex to) const;
  // All from which there is a way to the operator, with itself. n + m.
  [[nodiscard]] std::vector<bool> ancestors(OperatorIndex op) const;
  // All to which there is a way from the operator, with itself. n + m.
  [[nodiscard]] std::vector<bool> descendants(OperatorIndex op) const;

  // Operators on the longest way from a start to each, and from each to an end, each counted with it. n + m.
  [[nodiscard]] std::vector<std::int64_t> forward_levels() const;
  [[nodiscard]] std::vector<std::int64_t> backward_levels() const;

  // Dependencies that were added, in the order of adding.
  struct Added {
    OperatorIndex from = 0, to = 0;
  };
  [[nodiscard]] const std::vector<Added>& added() const { return added_; }

 private:
  using Lists = std::vector<std::vector<OperatorIndex>>;
  [[nodiscard]] std::vector<OperatorIndex> any_order() const;
  // An operator, and those that links lead to from it over operators within alone.
  template <class Within>
  [[nodiscard]] static std::vector<OperatorIndex> reached_within(const Lists& links, OperatorIndex from,
                                                                 const Within& within);
  static std::vector<bool> reached(const Lists& links, OperatorIndex from);

  Lists next_, previous_;
  std::vector<std::size_t> place_;  // of each operator in an order that keeps all dependencies
  std::vector<Added> added_;
};

}  // namespace spillway::planners
