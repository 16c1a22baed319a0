// A curve that holds each value until the next. Every pixel column is folded to its least and most, so that no peak is
// lost however many points there are.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/canvas/time_axis.h"

namespace spillway::gui {

struct CurveColumn {
  std::int64_t low = 0, high = 0;  // within the column
};

class StepCurve {
 public:
  // at: ascending (equal instants allowed; the last counts from then on, the ones before still show as peaks).
  void add(std::int64_t at, std::int64_t value);
  void reserve(std::size_t count);

  [[nodiscard]] std::size_t size() const { return at_.size(); }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  [[nodiscard]] std::int64_t value_at(std::int64_t time) const;  // 0 before the first point
  [[nodiscard]] std::int64_t time_of_peak() const { return peak_at_; }

  // One entry per whole pixel of the axis. O(columns x (log points + points of one block)).
  [[nodiscard]] std::vector<CurveColumn> fold(const TimeAxis& axis) const;

 private:
  static constexpr std::size_t block = 64;
  [[nodiscard]] CurveColumn extremes(std::size_t first, std::size_t last) const;

  std::vector<std::int64_t> at_, value_;
  std::vector<CurveColumn> blocks_;  // of points [i * block, (i + 1) * block)
  std::int64_t peak_ = 0, peak_at_ = 0;
};

}  // namespace spillway::gui
