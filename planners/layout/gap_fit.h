// Layouts around fixed buffers: one buffer after the other into the lowest hole that holds it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/layout/layout_sections.h"
#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// Fixed buffers keep their offsets. The others follow in the given order, each at the lowest aligned offset where
// nothing placed is in its way. Time: n k log n when each has k others beside it.
std::vector<std::int64_t> fit_into_gaps(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                                        std::span<const std::int32_t> order);

// The lowest of such layouts over orders by size, area, life and birth.
std::vector<std::int64_t> fit_into_gaps(std::span<const LayoutBuffer> buffers, const LayoutSections& sections);

}  // namespace spillway::planners
