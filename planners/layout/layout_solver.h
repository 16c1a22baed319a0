// Layout: addresses for buffers of known lifetimes. Buffers alive together never overlap, and the highest address in
// use is as low as can be (dynamic storage allocation, offline).
//
//   offset
//     ^   +-----------+           Time is half-open, [lower, upper): a buffer that ends when another
//     |   |     b     +-----+     begins may share its place. Sizes, offsets and times are in the
//     | +-+---+-------+  d  |     caller's own units; the memory planners use bytes and ticks.
//     | |  a  |   c   |     |
//     +-+-----+-------+-----+---> time
//
// Method: repeated skyline packing, favouring what failed. An exhaustive search of bottom-justified layouts follows on
// ranges of time that no buffer joins, with several orders racing. See docs/internals/layout.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace spillway::planners {

inline constexpr std::int64_t layout_free = -1;

struct LayoutBuffer {
  std::int64_t lower = 0, upper = 0;        // alive in [lower, upper); lower < upper
  std::int64_t size = 0;                    // >= 0; one of size 0 is put at offset 0 (or where it is fixed)
  std::int64_t alignment = 1;               // >= 1; the offset is a multiple of it
  std::int64_t fixed_offset = layout_free;  // >= 0: it must lie there, whatever the alignment; layout_free: anywhere
};

// Called now and then from the calling thread with the best height so far; false ends the search with what there is.
using LayoutProgress = std::function<bool(std::int64_t height, std::int64_t lower_bound)>;

struct LayoutOptions {
  // The search ends with the first layout of at most this height; 0: as low as the effort allows. A capacity below
  // the lower bound is answered without searching for one.
  std::int64_t capacity = 0;
  // How much is tried after the first layout, in placements of a buffer; the same effort gives the same answer on
  // every machine and with any number of threads. A million are some 1 to 3 seconds of one core.
  std::int64_t effort = 5'000'000;
  // Wall-clock limit, 0: none. The answer then depends on the machine's speed.
  double seconds = 0;
  // Threads, 0: as many as the machine has. Does not change the answer.
  int threads = 0;
  std::uint64_t seed = 1;
  LayoutProgress progress;
};

struct LayoutResult {
  std::vector<std::int64_t> offsets;  // of each buffer, in the order given
  std::int64_t height = 0;            // largest offset + size
  std::int64_t lower_bound = 0;       // no layout is lower; at least the most that is ever alive at once
  bool proven = false;                // height == lower_bound
  bool stopped = false;               // by the progress callback or the wall clock, so that more effort was left
  std::int64_t effort = 0;            // spent, in placements

  [[nodiscard]] bool fits(std::int64_t capacity) const { return height <= capacity; }
};

// Lays the buffers out. With no buffers the height is 0. Preconditions: the sum of all sizes, rounded up to their
// alignments, plus the largest fixed offset is below 2^62; buffers fixed where they overlap are a programmer's error.
// First layout: about n log n for n buffers.
LayoutResult solve_layout(std::span<const LayoutBuffer> buffers, const LayoutOptions& options = {});

// The most that is alive at once, the plain lower bound. n log n.
std::int64_t max_live(std::span<const LayoutBuffer> buffers);

}  // namespace spillway::planners
