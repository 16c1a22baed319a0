// A layout as PyTorch's caching allocator makes it, one request after another: what a planner has to be no higher than.
// Addresses that nothing ever lies at are closed up, so that its height is at most what the allocator reserves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// Of the default allocator and expandable segments the lower. Offsets in the order given. Preconditions, here and
// below: sizes are bytes, and multiples of 512 or without alignment; alignments divide 512; nothing is fixed. n log n.
std::vector<std::int64_t> emulated_layout(std::span<const LayoutBuffer> buffers);

// What PyTorch's allocator reserves for the buffers, by default and with expandable segments.
struct EmulatedReserve {
  std::int64_t torch = 0, expandable = 0;
  [[nodiscard]] std::int64_t least() const { return std::min(torch, expandable); }
};
EmulatedReserve emulated_reserve(std::span<const LayoutBuffer> buffers);

// Buffers of a training step laid out: solve_layout() over everything, then, if that is not proven to be as low as can
// be, above what lives to the end, and as emulated_layout(): the lowest.
LayoutResult lay_out_step(std::span<const LayoutBuffer> buffers, const LayoutOptions& options = {});

// Largest offset + size.
std::int64_t height_of(std::span<const LayoutBuffer> buffers, std::span<const std::int64_t> offsets);

}  // namespace spillway::planners
