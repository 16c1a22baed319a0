#include "models/fit/grid_fit.h"

#include <algorithm>
#include <cmath>

#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>

namespace spillway::models::fit {
namespace {

using Matrix = Eigen::SparseMatrix<double>;
using Entries = std::vector<Eigen::Triplet<double>>;
constexpr int rounds = 4;
constexpr double residual_floor = 0.02, residual_scale = 0.05, pull_to_zero = 1e-3;

Matrix design(const LogGrid& grid, std::span<const GridRow> rows) {
  Entries entries;
  const std::size_t axes = grid.axes().size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LogGrid::Corners corners = grid.corners(std::span(rows[i].point).first(axes));
    for (std::size_t c = 0; c < corners.count; ++c)
      entries.emplace_back(static_cast<int>(i), static_cast<int>(corners.node[c]), corners.weight[c]);
  }
  Matrix matrix(static_cast<int>(rows.size()), static_cast<int>(grid.values().size()));
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

Matrix roughness(const LogGrid& grid, double smoothness) {
  Entries entries;
  const auto nodes = static_cast<int>(grid.values().size());
  int stride = nodes;
  for (const std::vector<double>& axis : grid.axes()) {
    const auto length = static_cast<int>(axis.size());
    stride /= length;
    for (int node = 0; node < nodes; ++node) {
      const auto place = static_cast<std::size_t>(node / stride % length);
      if (place + 1 == axis.size()) continue;
      const double weight = smoothness / std::log(axis[place + 1] / axis[place]);
      entries.emplace_back(node, node, weight);
      entries.emplace_back(node + stride, node + stride, weight);
      entries.emplace_back(node, node + stride, -weight);
      entries.emplace_back(node + stride, node, -weight);
    }
  }
  for (int node = 0; node < nodes; ++node) entries.emplace_back(node, node, pull_to_zero);
  Matrix matrix(nodes, nodes);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

}  // namespace

void fit_grid(LogGrid& grid, std::span<const GridRow> rows, double smoothness) {
  const auto count = static_cast<Eigen::Index>(rows.size());
  Eigen::VectorXd values(count), given(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    values[i] = rows[static_cast<std::size_t>(i)].value;
    given[i] = rows[static_cast<std::size_t>(i)].weight;
  }
  const Matrix a = design(grid, rows), penalty = roughness(grid, smoothness);
  Eigen::VectorXd weight = given, solution = Eigen::VectorXd::Zero(a.cols());
  for (int round = 0; round < rounds; ++round) {
    const Matrix weighted = weight.asDiagonal() * a;
    const Matrix normal = Matrix(a.transpose()) * weighted + penalty;
    Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper> solver;
    solver.setTolerance(1e-8);
    solver.compute(normal);
    solution = solver.solveWithGuess(weighted.transpose() * values, solution);
    const Eigen::VectorXd residual = (values - a * solution).cwiseAbs();
    weight = given.array() * residual_scale / residual.array().max(residual_floor);
  }
  grid.set_values(std::vector<double>(solution.data(), solution.data() + solution.size()));
}

}  // namespace spillway::models::fit
