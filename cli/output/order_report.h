// The findings of `plan order`, measured and shown: one method's answer, or a table of several.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/options/context.h"
#include "planners/layout/emulated_layout.h"
#include "planners/order/order_method.h"

namespace spillway::cli {

struct OrderAnswer {
  OrderMethod method = OrderMethod::best;
  OrderOutcome outcome;
  double seconds = 0;                  // of the order, and of ROAM's layout, which is one with it
  double layout_seconds = 0;           // of other layouts
  std::optional<LayoutResult> layout;  // of the ordered tensors, without the constant
  EmulatedReserve reserved;            // by PyTorch's allocator for the ordered tensors, without the constant
  std::optional<std::int64_t> greedy_peak_bytes;
};

OrderAnswer answer_order(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options, bool layout);

// In the form the context asks for, with warnings about the graph.
void print_order(Context& context, const OrderGraph& graph, const OrderAnswer& answer);
// One row a method; all answers have layouts.
void print_orders(Context& context, const OrderGraph& graph, const std::vector<OrderAnswer>& answers);

}  // namespace spillway::cli
