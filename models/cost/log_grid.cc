#include "models/cost/log_grid.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::models {

LogGrid::LogGrid(std::vector<std::vector<double>> axes) : axes_(std::move(axes)) {
  SPILLWAY_ASSERT(!axes_.empty() && axes_.size() <= most_axes);
  std::size_t nodes = 1;
  for (const std::vector<double>& axis : axes_) {
    SPILLWAY_ASSERT(!axis.empty() && axis.front() > 0);
    std::vector<double>& logs = logs_.emplace_back();
    for (const double node : axis) {
      SPILLWAY_ASSERT(logs.empty() || std::log(node) > logs.back());
      logs.push_back(std::log(node));
    }
    nodes *= axis.size();
  }
  values_.assign(nodes, 0.0);
}

void LogGrid::set_values(std::vector<double> values) {
  SPILLWAY_ASSERT(values.size() == values_.size());
  values_ = std::move(values);
}

LogGrid::Corners LogGrid::corners(std::span<const double> point) const {
  SPILLWAY_ASSERT(point.size() == axes_.size());
  Corners found;
  found.count = 1;
  found.weight[0] = 1;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const std::vector<double>& logs = logs_[axis];
    const double x = std::clamp(std::log(point[axis]), logs.front(), logs.back());
    const auto above = static_cast<std::size_t>(std::upper_bound(logs.begin(), logs.end(), x) - logs.begin());
    const std::size_t low = above == 0 ? 0 : above - 1;
    const bool between = low + 1 < logs.size();
    const double share = between ? (x - logs[low]) / (logs[low + 1] - logs[low]) : 0;
    for (std::size_t i = 0; i < found.count; ++i) found.node[i] = found.node[i] * logs.size() + low;
    if (!between) continue;
    for (std::size_t i = 0; i < found.count; ++i) {
      found.node[found.count + i] = found.node[i] + 1;
      found.weight[found.count + i] = found.weight[i] * share;
      found.weight[i] *= 1 - share;
    }
    found.count *= 2;
  }
  return found;
}

double LogGrid::at(std::span<const double> point) const {
  const Corners around = corners(point);
  double sum = 0;
  for (std::size_t i = 0; i < around.count; ++i) sum += around.weight[i] * values_[around.node[i]];
  return sum;
}

bool LogGrid::contains(std::span<const double> point) const {
  for (std::size_t axis = 0; axis < axes_.size(); ++axis)
    if (point[axis] < axes_[axis].front() || point[axis] > axes_[axis].back()) return false;
  return true;
}

}  // namespace spillway::models
