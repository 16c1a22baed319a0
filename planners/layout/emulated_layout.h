// A layout as PyTorch's caching allocator makes it, one request after another: what a planner has to be no higher than.
// Addresses that nothing ever lies at are closed up, so that its height is at most what the allocator reserves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// The lower layout of the default allocator's and that with expandable segments. Offsets in the order given.
// Preconditions, here and below: sizes are bytes, and multiples of 512 or without alignment; alignments divide 512;
// nothing is fixed. n log n.
std::vector<std::int64_t> emulated_layout(std::span<const LayoutBuffer> buffers);

// Bytes that PyTorch's allocator reserves for the buffers, by default and with expandable segments.
struct EmulatedReserve {
  std::int64_t torch = 0, expandable = 0;
  [[nodiscard]] std::int64_t least() const { return std::min(torch, expandable); }
};
EmulatedReserve emulated_reserve(std::span<const LayoutBuffer> buffers);

// Lays out the buffers of a training step. solve_layout() takes them all. Without a proof of the lowest height it also
// lays out those that end early above those held to the end, and emulated_layout() competes. The lowest is returned.
LayoutResult lay_out_step(std::span<const LayoutBuffer> buffers, const LayoutOptions& options = {});

// Largest offset + size.
std::int64_t height_of(std::span<const LayoutBuffer> buffers, std::span<const std::int64_t> offsets);

}  // namespace spillway::planners
