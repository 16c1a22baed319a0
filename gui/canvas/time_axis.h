// Time to pixels and back: one range shared by every view over time.
//
//   view    what is shown, half-open; whole: all there is
//   pixels  from 0 at view.begin to `width` at view.end
//
// Times are picoseconds, or counts of memory events where a record has no times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/axis.h"

namespace spillway::gui {

struct TimeRange {
  std::int64_t begin = 0, end = 1;  // half-open, begin < end
  [[nodiscard]] std::int64_t length() const { return end - begin; }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

// The narrowest range that zooming shows.
inline constexpr std::int64_t shortest_view = 64;

// `view` with its length times `factor` (< 1 zooms in), the point at `anchor` (0 .. 1 of the width) held in place, kept
// inside `whole`.
TimeRange zoomed(TimeRange view, TimeRange whole, double factor, double anchor);
// Moved by `fraction` of its length (positive: later), kept inside `whole`.
TimeRange panned(TimeRange view, TimeRange whole, double fraction);
// `wanted` moved and cut so that it lies inside `whole`; its length kept where it can be.
TimeRange inside(TimeRange wanted, TimeRange whole);

class TimeAxis {
 public:
  // Precondition: width > 0, view.begin < view.end.
  TimeAxis(TimeRange view, double width)
      : view_(view), width_(width), scale_(width / static_cast<double>(view.length())) {}

  [[nodiscard]] double x(std::int64_t time) const { return static_cast<double>(time - view_.begin) * scale_; }
  [[nodiscard]] std::int64_t time(double x) const {
    return view_.begin + static_cast<std::int64_t>(x * static_cast<double>(view_.length()) / width_);
  }
  [[nodiscard]] double scale() const { return scale_; }  // pixels per unit of time
  [[nodiscard]] TimeRange view() const { return view_; }
  [[nodiscard]] double width() const { return width_; }

  // At round times (1, 2 or 5 times a power of ten), at most `most` of them, ascending. most >= 1.
  [[nodiscard]] std::vector<Tick> ticks(int most, bool timed = true) const;

 private:
  TimeRange view_;
  double width_, scale_;
};

// "1.234 ms": `time` in picoseconds, in the largest unit that keeps the number above 1; untimed: "1,234 events".
std::string time_text(std::int64_t time, bool timed = true);

}  // namespace spillway::gui
