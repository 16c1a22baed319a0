// Skyline packing again and again, each time favouring what the last time failed on.
//
// A pass packs by keys life^p size^q. It gives up when waste in some section keeps it from beating the best height so
// far. The buffers of that section that had to wait get larger keys, and the next pass takes them earlier. After a
// while without success a pass begins afresh with other p and q. Several such wheels run side by side and share the
// best height.
//
// Source: squeaky wheel optimization (Joslin and Clements, JAIR 10, 1999), here on the keys of
// planners/layout/skyline.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_budget.h"
#include "planners/layout/layout_sections.h"
#include "planners/layout/layout_solver.h"

namespace spillway::planners {

struct SkylineLayout {
  std::vector<std::int64_t> offsets;
  std::int64_t height = 0;
};

// The best layout found: the first pass always ends with one; then until a height of `goal`, or `effort` (in
// placements) or the budget is spent. Precondition: no buffer is fixed.
SkylineLayout pack_repeatedly(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::int64_t goal,
                              std::int64_t effort, const LayoutOptions& options, LayoutBudget& budget);

}  // namespace spillway::planners
