// Puts a solver's result before the independent check of layout_check.h.
#pragma once

#include <span>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

// Asserts that the result is a legal layout of the buffers, at its stated height, with fixed offsets kept. A failure is
// a defect of the solver, whatever the input. n log n.
void check_result(std::span<const LayoutBuffer> buffers, const LayoutResult& result);

}  // namespace spillway::planners
