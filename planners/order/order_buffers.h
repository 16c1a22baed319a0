// Buffers of an ordered graph, for a layout: one for each tensor of positive size, alive from its source's step until
// after its last sink's.
#pragma once

#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"
#include "planners/order/order_graph.h"

namespace spillway::planners {

// In the order of the graph's tensors, without those of no bytes. Times are steps of the order, half-open. The constant
// is not among them. n + m.
std::vector<LayoutBuffer> buffers_of_order(const OrderGraph& graph, std::span<const OperatorIndex> order);

}  // namespace spillway::planners
