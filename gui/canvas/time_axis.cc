#include "gui/canvas/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace spillway::gui {
namespace {

struct Unit {
  double picos;
  const char* name;
};
constexpr std::array<Unit, 5> units = {{{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}}};

const Unit& unit_for(double picos) {
  for (const Unit& unit : units)
    if (std::abs(picos) >= unit.picos) return unit;
  return units.back();
}

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(std::abs(number));
  std::string text = number < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

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

std::vector<TimeAxis::Tick> TimeAxis::ticks(int most, bool timed) const {
  const double rough = static_cast<double>(view_.length()) / std::max(1, most);
  const double power = std::pow(10.0, std::floor(std::log10(std::max(rough, 1.0))));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  const auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(step)));
  const Unit& unit = unit_for(static_cast<double>(std::max(std::abs(view_.begin), std::abs(view_.end))));
  const int decimals = std::clamp(static_cast<int>(std::ceil(std::log10(unit.picos / step) - 1e-9)), 0, 9);
  std::vector<Tick> marks;
  std::int64_t first = view_.begin / stride * stride;
  if (first < view_.begin) first += stride;
  for (std::int64_t at = first; at < view_.end; at += stride)
    marks.push_back({at, timed ? fmt::format("{:.{}f} {}", static_cast<double>(at) / unit.picos, decimals, unit.name)
                               : grouped(at)});
  return marks;
}

std::string time_text(std::int64_t time, bool timed) {
  if (!timed) return grouped(time) + " events";
  if (time == 0) return "0";
  const Unit& unit = unit_for(static_cast<double>(time));
  return fmt::format("{:.3f} {}", static_cast<double>(time) / unit.picos, unit.name);
}

std::string bytes_words(std::int64_t bytes) {
  constexpr std::array<const char*, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < names.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, names[unit]);
}

}  // namespace spillway::gui
