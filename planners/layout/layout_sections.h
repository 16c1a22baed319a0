// Time reduced to what matters for a layout: the sections, which are the maximal sets of buffers alive together.
//
//   buffers   +--a--+--c--+         Time is cut where some buffer ends after another has begun: whatever is alive at
//             |  +--b--+  |         another moment is a subset of what is alive in a section. A buffer lives in a
//   sections  |  0  | 1|2 |  -> a: [0, 1), b: [0, 2), c: [1, 3)   run of sections; two overlap in time if and only if
//                                    their runs do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

struct SectionSpan {
  std::int32_t lower = 0, upper = 0;  // [lower, upper), lower < upper
};

struct LayoutSections {
  std::vector<SectionSpan> spans;      // of each buffer
  std::int32_t count = 0;              // of sections
  std::vector<std::int64_t> live;      // sum of sizes in each section
  std::vector<std::int32_t> partings;  // sections before which nothing is alive across: 0, ..., count

  [[nodiscard]] std::int64_t max_live() const;
};

// n log n. Precondition: lower < upper for each buffer, fewer than 2^30 of them.
LayoutSections sections_of(std::span<const LayoutBuffer> buffers);

}  // namespace spillway::planners
