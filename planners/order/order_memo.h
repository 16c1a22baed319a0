// Orders that the program has found already: a scenario's memory is judged within several limits, and techniques side
// by side plan the same graph for each row.
#pragma once

#include <cstdint>

#include "planners/order/order_method.h"

namespace spillway::planners {

// Covers all that an order depends on: the graph with its names, the method and its options except progress.
std::uint64_t digest_of_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options);

// As order_by(), which is asked once for equal graphs, methods and options, also by threads that ask at the same time;
// the last 16 are kept (4 bytes an operator). For options without progress. After an order that throws, the next caller
// searches again.
OrderOutcome known_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options = {});

}  // namespace spillway::planners
