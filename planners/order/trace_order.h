// The order of a trace's works with the lowest peak, and a layout of what it allocates, as a plan for the replay.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "planners/layout/layout_solver.h"
#include "planners/order/order_method.h"
#include "planners/order/trace_graph.h"
#include "sim/replay/plan.h"
#include "traces/trace.h"

namespace spillway::planners {

inline constexpr std::string_view order_word = "order", roam_layout_word = "roam-layout";

struct RankOrder {
  TraceOrderGraph graph;
  OrderOutcome order;  // of the graph
  // Most bytes allocated at once on graph.device, without rounding: as the trace has it (-1: it does not say), in the
  // program's order, and in the new order. The program's gives each tensor back after its last use.
  std::int64_t recorded_peak = -1, program_peak = 0, peak = 0;
};

struct TraceOrder {
  std::vector<RankOrder> ranks;                   // one at least
  Plan plan;                                      // order and places
  Trace trace;                                    // in the new order
  std::optional<OffloadPlan> fates;               // as those given, of that trace
  std::map<std::int16_t, LayoutResult> layouts;   // of all requests of a device, in steps of 512 bytes
  [[nodiscard]] const RankOrder& widest() const;  // the rank with the highest peak
};

struct TraceOrderOptions {
  OrderMethod method = OrderMethod::best;
  OrderMethodOptions order;
  bool recall = false;                 // an order found before is taken (order_memo.h); without progress
  const OffloadPlan* fates = nullptr;  // of the trace: what they leave is ordered
  bool layout = false;                 // not with `fates`: their requests come in the order of a replay
  LayoutOptions layout_options;
};

// Every plan is checked by check_reordering() and check_placement(). Throws InputError as order_graphs_of().
TraceOrder plan_order(const Trace& trace, const TraceOrderOptions& options = {});

// Lays out all requests of one device, in steps of 512 bytes; checked by check_placement().
LayoutResult lay_out_requests(const Trace& trace, std::int16_t device, const LayoutOptions& options, MemoryPlan& plan);

// The same by ROAM's layout (roam_layout.h) of the trace's order, for its ranks' devices. Key points, leaves and the
// loss are those of the rank's graph, and a leaf is the requests from its first operator to its last. Checked alike.
// Throws InputError as order_graphs_of(), beyond 10,000 requests on a device, and where tensors leave and come back,
// which ROAM's graph doesn't have. Requests squared.
std::map<std::int16_t, MemoryPlan> roam_places(const Trace& trace);

}  // namespace spillway::planners
