// Fits the nodes of a LogGrid to scattered values: robust least squares with the roughness of the grid as penalty.
//
//   minimise  sum w_i |value_i - grid(point_i)|_huber-like  +  smoothness * sum over neighbouring nodes (difference^2 /
//   distance in log) + a little |node|^2, so that nodes without rows go to their neighbours, and to 0 far away
//
// Reweighted least squares (weights 1 / max(|residual|, floor)), each round one sparse conjugate-gradient solve
// (Eigen). Deterministic.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "models/cost/log_grid.h"

namespace spillway::models::fit {

struct GridRow {
  std::array<double, LogGrid::most_axes> point{};
  double value = 0, weight = 1;
};

void fit_grid(LogGrid& grid, std::span<const GridRow> rows, double smoothness);

}  // namespace spillway::models::fit
