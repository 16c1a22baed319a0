// ROAM's planner as published: an order by independent segments and a layout by the same subgraph tree. A baseline to
// compare with; solve_order() and solve_layout() reach lower peaks and heights.
//
//   graph -> branches (roam_branches.h) -> dependencies of updates (roam_updates.h) -> key points and segments
//   (roam_segments.h) -> subgraph tree (roam_tree.h) -> each segment ordered exactly -> leaves laid out and merged
//   (roam_layout.h)
//
// Source: ROAM (arXiv 2310.19295) and its published code (HuiyaoShu/ROAM 2a0e61f), single stream. See
// docs/internals/roam.md for what is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planners/order/order_graph.h"
#include "planners/order/order_solver.h"
#include "planners/order/roam_tree.h"

namespace spillway::planners {

struct RoamOptions {
  std::size_t node_limit = 100;  // of a leaf of the subgraph tree, in operators
  // The published `ratio`: the least size of a gradient, in inputs of its operator, at which its update may be delayed.
  // It is also how many times larger than an activation a tensor may be that it evicts from its place.
  double ratio = 1;
  std::int64_t segment_effort = 200'000;  // of the search in one segment, in operators visited
  bool layout = true;
  OrderProgress progress;
};

struct RoamResult {
  std::vector<OperatorIndex> order;
  std::int64_t peak_bytes = 0;        // with the constant
  std::vector<std::int64_t> offsets;  // of buffers_of_order(); empty without layout
  std::int64_t height_bytes = 0;      // with the constant
  // Counts of the pipeline's steps.
  std::size_t branches = 0, delayed = 0, key_points = 0, segments = 0, leaves = 0, evicted = 0;
  std::size_t unproven_segments = 0;  // ordered without proof, because their effort ran out
  bool stopped = false;               // by the progress callback; the rest is in the program's order
};

// Precondition: no cycle. Branches times (n + m) for the updates, buffers squared for the layout: 10,000 operators take
// seconds.
RoamResult plan_roam(const OrderGraph& graph, const RoamOptions& options = {});

}  // namespace spillway::planners
