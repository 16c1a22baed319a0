// Orders that the program has found already: a scenario's memory is judged within several limits, and techniques side
// by side plan the same graph for each row.
#pragma once

#include <cstdint>

#include "planners/order/order_method.h"

namespace spillway::planners {

// Of all that an order depends on: the graph with its names, the method and its options but for progress.
std::uint64_t digest_of_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options);

// As order_by(), which is asked once for equal graphs, methods and options, also by threads that ask at the same time;
// the last 16 are kept (4 bytes an operator). For options without progress. An order that throws is sought again by
// whoever asks next.
OrderOutcome known_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options = {});

}  // namespace spillway::planners
