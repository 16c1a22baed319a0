// Skyline packing: layouts built from the ground up, the lowest gap first.
//
//   offset         #   The skyline is the top of what is placed. Its lowest flat piece between two walls is the gap. Of
//     |  ##   #### #   the buffers that live inside the gap's time, the one with the best key is put on its floor; if
//     |  ##...#### #   there is none, the gap is lifted to the lower of its walls, and what it had below is wasted for
//     +---------------> time      good. Bottom-justified: every buffer lies on the ground or on another.
//
// Sources: the lowest-gap best-fit rule for strip packing (Burke, Kendall and Whitwell, Operations Research 52(4),
// 2004), with fixed positions in time. Choosing by keys instead of by widest fit is ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planners/layout/best_inside.h"
#include "planners/layout/layout_sections.h"
#include "planners/layout/layout_solver.h"

namespace spillway::planners {

class Skyline {
 public:
  // Both must outlive this. Precondition: no buffer is fixed.
  Skyline(std::span<const LayoutBuffer> buffers, const LayoutSections& sections);

  // Places all buffers, of those that fit a gap the one with the largest key first (of equal ones the last born).
  // Gives up as soon as the height is sure to reach `bound`: then the result is false and the offsets of the unplaced
  // are layout_free. About n log n.
  bool pack(std::span<const float> keys, std::int64_t bound);

  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offsets_; }
  [[nodiscard]] std::int64_t height() const { return height_; }
  // Effort of the last pack(), in placements; searches count where gaps are many and few buffers fit.
  [[nodiscard]] std::int64_t effort() const { return std::max(placements_, waiting_.visits() / visits_per_placement); }
  // The section with the waste that made the last pack() give up, or the highest.
  [[nodiscard]] std::int32_t worst_section() const;

 private:
  static constexpr std::int64_t visits_per_placement = 64;  // a step of training takes fewer

  void reset(std::span<const float> keys);
  void waste(std::size_t node, std::int32_t from, std::int32_t size, SectionSpan span, std::int64_t amount);
  void open_gap(std::int32_t lower, std::int32_t upper, std::int64_t height);
  void push_gap(std::int32_t lower);
  bool place(std::int32_t gap, std::int32_t index, std::int64_t bound);
  bool lift(std::int32_t gap, std::int64_t bound);

  std::span<const LayoutBuffer> buffers_;
  const LayoutSections& sections_;
  BestInside waiting_;
  std::int32_t wastes_ = 1;                 // a power of two
  std::vector<std::int64_t> demand_, own_;  // tree over sections: floor + unplaced, and what was added to whole nodes
  std::vector<std::int64_t> gap_height_;    // by a gap's lower section
  std::vector<std::int32_t> gap_upper_, gap_lower_;  // by lower section; by upper section
  std::vector<std::pair<std::int64_t, std::int32_t>> heap_;
  std::vector<std::int64_t> offsets_;
  std::int64_t height_ = 0, placements_ = 0;
};

}  // namespace spillway::planners
