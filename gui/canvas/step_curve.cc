#include "gui/canvas/step_curve.h"

#include <algorithm>

namespace spillway::gui {

void StepCurve::reserve(std::size_t count) {
  at_.reserve(count);
  value_.reserve(count);
  blocks_.reserve(count / block + 1);
}

void StepCurve::add(std::int64_t at, std::int64_t value) {
  if (at_.size() % block == 0)
    blocks_.push_back({value, value});
  else
    blocks_.back() = {std::min(blocks_.back().low, value), std::max(blocks_.back().high, value)};
  if (at_.empty() || value > peak_) {
    peak_ = value;
    peak_at_ = at;
  }
  at_.push_back(at);
  value_.push_back(value);
}

std::int64_t StepCurve::value_at(std::int64_t time) const {
  const auto after = std::upper_bound(at_.begin(), at_.end(), time);
  return after == at_.begin() ? 0 : value_[static_cast<std::size_t>(after - at_.begin() - 1)];
}

CurveColumn StepCurve::extremes(std::size_t first, std::size_t last) const {
  CurveColumn found{value_[first], value_[first]};
  const auto take = [&found](std::int64_t low, std::int64_t high) {
    found.low = std::min(found.low, low);
    found.high = std::max(found.high, high);
  };
  std::size_t i = first;
  for (; i < last && i % block != 0; ++i) take(value_[i], value_[i]);
  for (; i + block <= last; i += block) take(blocks_[i / block].low, blocks_[i / block].high);
  for (; i < last; ++i) take(value_[i], value_[i]);
  return found;
}

std::vector<CurveColumn> StepCurve::fold(const TimeAxis& axis) const {
  std::vector<CurveColumn> columns(static_cast<std::size_t>(axis.width()));
  auto from = std::upper_bound(at_.begin(), at_.end(), axis.view().begin);
  std::int64_t held = from == at_.begin() ? 0 : value_[static_cast<std::size_t>(from - at_.begin() - 1)];
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const bool is_last = column + 1 == columns.size();
    const std::int64_t end = is_last ? axis.view().end : axis.time(static_cast<double>(column + 1));
    const auto until = std::lower_bound(from, at_.end(), end);
    CurveColumn& into = columns[column];
    into = {held, held};
    if (until != from) {
      const CurveColumn inner =
          extremes(static_cast<std::size_t>(from - at_.begin()), static_cast<std::size_t>(until - at_.begin()));
      into = {std::min(held, inner.low), std::max(held, inner.high)};
      held = value_[static_cast<std::size_t>(until - at_.begin() - 1)];
      from = until;
    }
  }
  return columns;
}

}  // namespace spillway::gui
