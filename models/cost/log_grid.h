// A table over up to four positive quantities: nodes on each axis, multilinear in their logarithms in between, the
// nearest edge outside. Used for the residuals of a physical model, so 0 stands for "as the model says".
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace spillway::models {

class LogGrid {
 public:
  static constexpr std::size_t most_axes = 4;
  static constexpr std::size_t most_corners = std::size_t{1} << most_axes;

  // Node indices around a point and their weights, which add up to one.
  struct Corners {
    std::array<std::size_t, most_corners> node{};
    std::array<double, most_corners> weight{};
    std::size_t count = 0;
  };

  LogGrid() = default;
  // Every axis rises strictly from a positive number; the last axis varies fastest. Values start at 0.
  explicit LogGrid(std::vector<std::vector<double>> axes);

  // Preconditions: not empty, one positive coordinate per axis. O(sum of log nodes + 2^axes).
  [[nodiscard]] double at(std::span<const double> point) const;
  [[nodiscard]] Corners corners(std::span<const double> point) const;
  [[nodiscard]] bool contains(std::span<const double> point) const;

  [[nodiscard]] bool empty() const { return values_.empty(); }
  [[nodiscard]] const std::vector<std::vector<double>>& axes() const { return axes_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  void set_values(std::vector<double> values);  // as many as nodes

 private:
  std::vector<std::vector<double>> axes_, logs_;
  std::vector<double> values_;
};

}  // namespace spillway::models
