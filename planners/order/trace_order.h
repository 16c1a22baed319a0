// The order of a trace's works with the lowest peak, and a layout of what it allocates, as a plan for the replay.
#pragma once

#include <optional>
#include <string_view>

#include "planners/layout/layout_solver.h"
#include "planners/order/order_solver.h"
#include "planners/order/trace_graph.h"
#include "sim/replay/plan.h"
#include "traces/trace.h"

namespace spillway::planners {

inline constexpr std::string_view order_word = "order";

struct TraceOrder {
  TraceOrderGraph graph;
  OrderResult order;  // of the graph
  Plan plan;
  Trace trace;                         // in the new order
  std::optional<LayoutResult> layout;  // of all its requests on graph.device, in steps of 512 bytes
  // Most bytes allocated at once on graph.device, without rounding: as the trace has it (-1: it does not say), in the
  // program's order with each tensor given back after its last use, and in the new order.
  std::int64_t recorded_peak = -1, program_peak = 0, peak = 0;
};

struct TraceOrderOptions {
  OrderOptions order;
  bool layout = false;
  LayoutOptions layout_options;
};

// Every plan is checked by check_reordering() and check_placement(). Throws InputError as order_graph_of().
TraceOrder plan_order(const Trace& trace, const TraceOrderOptions& options = {});

// Of all requests of one device, in steps of 512 bytes; checked by check_placement().
LayoutResult lay_out_requests(const Trace& trace, std::int16_t device, const LayoutOptions& options, MemoryPlan& plan);

}  // namespace spillway::planners
