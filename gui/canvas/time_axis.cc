#include "gui/canvas/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace spillway::gui {

TimeRange inside(TimeRange wanted, TimeRange whole) {
  const std::int64_t length = std::clamp<std::int64_t>(wanted.length(), 1, whole.length());
  const std::int64_t begin = std::clamp(wanted.begin, whole.begin, whole.end - length);
  return {begin, begin + length};
}

TimeRange zoomed(TimeRange view, TimeRange whole, double factor, double anchor) {
  const auto length = static_cast<double>(view.length());
  const double least = static_cast<double>(std::min(shortest_view, whole.length()));
  const double wanted = std::clamp(length * factor, least, static_cast<double>(whole.length()));
  const double begin = static_cast<double>(view.begin) + anchor * (length - wanted);
  const auto from = static_cast<std::int64_t>(std::llround(begin));
  return inside({from, from + static_cast<std::int64_t>(std::llround(wanted))}, whole);
}

TimeRange panned(TimeRange view, TimeRange whole, double fraction) {
  const auto by = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(view.length())));
  return inside({view.begin + by, view.end + by}, whole);
}

std::vector<Tick> TimeAxis::ticks(int most, bool timed) const {
  const double rough = static_cast<double>(view_.length()) / std::max(1, most);
  const double step = round_step(std::max(rough, 1.0));
  const auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(step)));
  const std::int64_t furthest = std::max(std::abs(view_.begin), std::abs(view_.end));
  const InUnit scaled = in_time_unit(Picos(furthest));
  const double unit = static_cast<double>(furthest) / scaled.amount;
  const int decimals = std::clamp(static_cast<int>(std::ceil(std::log10(unit / step) - 1e-9)), 0, 9);
  std::vector<Tick> marks;
  std::int64_t first = view_.begin / stride * stride;
  if (first < view_.begin) first += stride;
  for (std::int64_t at = first; at < view_.end; at += stride)
    marks.push_back({at, timed ? fmt::format("{:.{}f} {}", static_cast<double>(at) / unit, decimals, scaled.unit)
                               : grouped_text(at)});
  return marks;
}

std::string time_text(std::int64_t time, bool timed) {
  if (!timed) return grouped_text(time) + " events";
  return time == 0 ? "0" : precise_duration_text(Picos(time));
}

}  // namespace spillway::gui
