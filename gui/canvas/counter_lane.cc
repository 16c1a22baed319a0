#include "gui/canvas/counter_lane.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"

namespace spillway::gui {

CounterLane::CounterLane(studies::Counter counter) : counter_(std::move(counter)) {
  double sum = 0;
  for (std::size_t i = 0; i < counter_.at.size(); ++i) {
    if (i > 0) sum += counter_.value[i - 1] * static_cast<double>(counter_.at[i] - counter_.at[i - 1]);
    sums_.push_back(sum);
  }
  const auto most = std::max_element(counter_.value.begin(), counter_.value.end());
  top_ = counter_.limit > 0 ? counter_.limit : most == counter_.value.end() ? 0 : *most;
  if (top_ <= 0) top_ = 1;
}

double CounterLane::until(std::int64_t time) const {
  const auto after = std::upper_bound(counter_.at.begin(), counter_.at.end(), time);
  if (after == counter_.at.begin()) return 0;
  const auto i = static_cast<std::size_t>(after - counter_.at.begin() - 1);
  return sums_[i] + counter_.value[i] * static_cast<double>(time - counter_.at[i]);
}

double CounterLane::mean(TimeRange range) const {
  return (until(range.end) - until(range.begin)) / static_cast<double>(range.length());
}

double CounterLane::value_at(std::int64_t time) const {
  const auto after = std::upper_bound(counter_.at.begin(), counter_.at.end(), time);
  return after == counter_.at.begin() ? 0 : counter_.value[static_cast<std::size_t>(after - counter_.at.begin() - 1)];
}

std::vector<double> CounterLane::fold(const TimeAxis& axis) const {
  std::vector<double> columns(static_cast<std::size_t>(axis.width()));
  std::int64_t begin = axis.view().begin;
  double before = until(begin);
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::int64_t end = std::max(begin + 1, axis.time(static_cast<double>(column + 1)));
    const double after = until(end);
    columns[column] = (after - before) / static_cast<double>(end - begin);
    begin = end;
    before = after;
  }
  return columns;
}

std::string CounterLane::text(double value) const {
  switch (counter_.unit) {
    case studies::CounterUnit::share:
      return percent_text(value);
    case studies::CounterUnit::bytes_per_second:
      return fmt::format("{:.1f} GB/s", value / 1e9);
    case studies::CounterUnit::transfers:
      break;
  }
  return fmt::format("{:.3g}", value);
}

void paint_counter(QImage& image, const PlotFrame& frame, const CounterLane& counter, TimeRange view, int top,
                   int height, const Theme& theme) {
  const int clip = frame.device(frame.axis), bottom = frame.device(top + height), left = frame.device(frame.gutter);
  const bool is_drive = counter.counter().unit == studies::CounterUnit::transfers;
  const bool is_rate = counter.counter().unit == studies::CounterUnit::bytes_per_second;
  const std::uint32_t color = theme[is_drive ? Token::drive : is_rate ? Token::host : Token::weight].rgb();
  fill_rows(image, left, image.width(), std::max(clip, frame.device(top)), bottom, theme[Token::sunken].rgb());
  const std::vector<double> columns = counter.fold(frame.device_axis(view));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double part = std::clamp(columns[i] / counter.top(), 0.0, 1.0);
    if (part <= 0) continue;
    const int high = std::min(bottom - 1, frame.device(top + height * (1 - part)));
    fill_rows(image, left + static_cast<int>(i), left + static_cast<int>(i) + 1, std::max(clip, high), bottom, color);
  }
}

}  // namespace spillway::gui
