// One pass through the graph that tries to keep below a bound.
//
// Whatever can run below the bound and leaves no more alive than before runs at once: an operator, or an excursion. An
// excursion is a sequence found from an operator through what it makes ready: a hill that ends in a valley no higher
// than its start (Liu 1987). Running such a single operator early never harms, as bytes alive are a submodular function
// of what has run. Updates of weights thus need no special treatment: the bound decides which of them wait. Only where
// nothing of the sort is left the pass chooses, the operator of highest rank that stays below the bound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/order/order_graph.h"
#include "planners/order/order_links.h"

namespace spillway::planners {

struct OrderPassOptions {
  std::int64_t bound = 0;              // bytes, without the constant; exceeded as little as the pass can where it must
  std::span<const std::int64_t> rank;  // of each operator; the highest runs first where there is a choice
  std::size_t excursion = 48;          // operators in an excursion, at most
  std::int64_t give_up = -1;           // the pass ends without an order as soon as it needs more; -1: never
  std::int64_t looks = -1;  // operators of excursions in all; then none are sought; -1: as many as steps take
};

struct OrderPassResult {
  std::vector<OperatorIndex> order;  // empty if given up
  std::int64_t peak = 0;             // without the constant
  // A pass with a bound from this one's up to, not with, that bound runs the same operators: nothing that was too high
  // for this pass fits that one.
  std::int64_t same_below = 0;
};

// Near n log n with bounded fan-out; never more than some 64 operators of excursions an operator. Legal orders only.
OrderPassResult order_pass(const OrderLinks& links, const OrderPassOptions& options);

}  // namespace spillway::planners
