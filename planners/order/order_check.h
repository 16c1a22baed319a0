// Is an order legal? Written apart from the solver: every order is checked by it before it is shown or stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "planners/order/order_graph.h"

namespace spillway::planners {

struct OrderVerdict {
  std::string fault;            // empty for a legal order; else what is wrong
  std::int64_t peak_bytes = 0;  // of a legal order, with the constant; counted by running it
  [[nodiscard]] bool legal() const { return fault.empty(); }
};

// Every operator runs once, after the sources of all tensors it reads or waits for. n + m.
OrderVerdict check_order(const OrderGraph& graph, std::span<const OperatorIndex> order);

}  // namespace spillway::planners
