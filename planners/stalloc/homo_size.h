// Layers of equal sizes: the packing of STAlloc's published planner.
//
//   offset    layer of 8 |##8##|  |####8####|      Sizes from the largest down. A request goes into the first layer, by
//     ^                  +--2--+--+---+-----+      address, over the highest top the layer has during its life; those
//     |       layer of 5 |###5###||#5#| |2|        that fit nowhere form layers of their own size, each request behind
//     +----------------------------------> time    the one that ended last before it.
//
// Source: Liu et al., STAlloc (EuroSys 2026, arXiv 2507.16274), algorithm 1 and section 5.1. The authors' code
// (infinigence/STAlloc 3a9f97f) adds two rules. The order within a size is that of the layers the size would form
// alone. Requests that did not fit are tried first in the next of several trials as long as that costs no more.
//
// Deviation: a life ends before the moment another begins may share its place ([lower, upper)), as in the code; the
// paper asks for a gap.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// Offsets in the order given; alignments and fixed offsets are ignored. Requests of size 0 lie at 0. Time: O(n (layers
// log n)), and more for long lifetimes and fragmented layers. Gives up, with nothing, once it has visited more than
// `most_looks` layers and pieces of them.
std::vector<std::int64_t> layer_by_size(std::span<const LayoutBuffer> requests,
                                        std::int64_t most_looks = std::numeric_limits<std::int64_t>::max());

// Least number of layers for lifetimes that may not overlap within one: the first request of each layer opens it.
// Returns the requests layer by layer, within one in order of time. `requests` index `all`. n log n.
std::vector<std::vector<std::size_t>> layers_of(std::span<const LayoutBuffer> all, std::vector<std::size_t> requests);

}  // namespace spillway::planners
