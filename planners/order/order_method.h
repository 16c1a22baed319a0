// The ways to order a graph that can be chosen and compared, each with the layout that goes with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planners/layout/layout_solver.h"
#include "planners/order/order_graph.h"
#include "planners/order/order_solver.h"
#include "planners/order/roam.h"

namespace spillway::planners {

inline constexpr std::string_view program_order_word = "program";

enum class OrderMethod : std::uint8_t {
  program,  // the program's order, made legal where it breaks hazards
  greedy,   // list order: least alive after the operator; ties by the program's order
  lescea,   // the same with ties by name, as ROAM's baseline has them; laid out longest-lived first (LLFB)
  roam,     // ROAM as published, with its own layout
  best,     // the lowest peak we find: solve_order()
};
inline constexpr int order_method_count = static_cast<int>(OrderMethod::best) + 1;
std::string_view to_string(OrderMethod method);

struct OrderMethodOptions {
  OrderOptions best;
  RoamOptions roam;
};

struct OrderOutcome {
  std::vector<OperatorIndex> order;
  std::int64_t peak_bytes = 0;         // with the constant, counted by check_order()
  std::int64_t lower_bound_bytes = 0;  // no order is lower; 0 where the method gives none
  bool proven = false;
  bool stopped = false;
  std::optional<RoamResult> roam;  // of that method
};

// Every order is legal: one that is not is a programmer's error, and so is a graph with a cycle.
OrderOutcome order_by(OrderMethod method, const OrderGraph& graph, const OrderMethodOptions& options = {});

// The layout that goes with a method, of buffers_of_order(): LESCEA's, ROAM's own (which must be in the outcome), and
// solve_layout() for all others. Checked.
LayoutResult layout_by(OrderMethod method, const OrderGraph& graph, const OrderOutcome& outcome,
                       const LayoutOptions& options = {});

}  // namespace spillway::planners
