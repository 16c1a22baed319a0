// A counter over time: of every pixel column the mean, so that what is busy half of the time is half as high however
// short its works are.
#pragma once

#include <QImage>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/canvas/plot_frame.h"
#include "studies/diagnosis/counters.h"

namespace spillway::gui {

class CounterLane {
 public:
  explicit CounterLane(studies::Counter counter);

  [[nodiscard]] const std::string& name() const { return counter_.name; }
  [[nodiscard]] const studies::Counter& counter() const { return counter_; }
  // The value at the track's full height: the counter's limit, else its maximum. > 0.
  [[nodiscard]] double top() const { return top_; }
  [[nodiscard]] double mean(TimeRange range) const;        // O(log points)
  [[nodiscard]] double value_at(std::int64_t time) const;  // O(log points)
  // One entry per whole pixel of the axis. O(columns x log points).
  [[nodiscard]] std::vector<double> fold(const TimeAxis& axis) const;
  // "23.1 GB/s"
  [[nodiscard]] std::string text(double value) const;

 private:
  [[nodiscard]] double until(std::int64_t time) const;  // integral from the first point
  studies::Counter counter_;
  std::vector<double> sums_;  // integral before each point
  double top_ = 1;
};

// Into rows [top, top + height), logical pixels.
void paint_counter(QImage& image, const PlotFrame& frame, const CounterLane& counter, TimeRange view, int top,
                   int height, const Theme& theme);

}  // namespace spillway::gui
