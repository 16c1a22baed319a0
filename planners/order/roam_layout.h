// ROAM's layout of an ordered graph: each leaf of the subgraph tree alone, then all of them merged.
//
//   In a leaf the activations lie at the bottom, those freed last the lowest, and everything else as low as can be
//   above those it lives with. Leaves are stacked from the outermost inwards, each on the activations of those before;
//   where a tensor of a leaf meets one placed before, the smaller of the two is evicted. The evicted go on top of what
//   stays, then every tensor slides down into the lowest hole that takes it.
//
// Source: ROAM (arXiv 2310.19295) and its published code. Ours: exhaustive search where they solve integer programs for
// the leaves, and first fit of the evicted, the largest first, where they solve another. Lifetimes and addresses are
// compared as half-open intervals, where theirs miss some overlaps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"
#include "planners/order/roam_tree.h"

namespace spillway::planners {

struct RoamLayoutOptions {
  // An activation evicts a tensor placed before it that is larger, up to that many times its own size.
  double eviction_ratio = 1;
  std::int64_t leaf_effort = 50'000;  // of the search in one leaf, in placements
};

struct RoamLayout {
  std::vector<std::int64_t> offsets;  // of each buffer
  std::int64_t height = 0;
  std::size_t evicted = 0;
};

// Buffers have steps of the order as times; none is fixed. `loss` is the step of the loss. Buffers squared.
RoamLayout roam_layout(std::span<const LayoutBuffer> buffers, std::span<const RoamLeaf> leaves, std::size_t loss,
                       const RoamLayoutOptions& options = {});

}  // namespace spillway::planners
