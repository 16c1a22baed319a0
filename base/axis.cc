#include "base/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "base/number_text.h"

namespace spillway {
namespace {

constexpr double slack = 1e-3;  // of a step

// The step is one of `unit`, in which the ticks are written.
std::vector<Tick> ticks(std::int64_t span, int target, const InUnit& most, std::string_view unit,
                        bool unit_everywhere) {
  std::vector<Tick> result;
  if (span <= 0) return result;
  const double size = static_cast<double>(span) / most.amount;
  double step = round_step(most.amount / std::max(target, 1));
  if (most.is_smallest) step = std::max(step, 1.0);
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + slack)));
  for (int i = 0; i * step <= most.amount; ++i)
    result.push_back({std::llround(i * step * size), fmt::format("{:.{}f}", i * step, decimals)});
  for (Tick& tick : result)
    if (unit_everywhere || &tick == &result.back()) tick.label += fmt::format(" {}", unit);
  return result;
}

std::vector<double> multiples(double step, double low, double high) {
  std::vector<double> found;
  const double first = std::ceil(low / step - slack) + 0.0;  // no -0
  for (double i = first; i * step <= high + step * slack; ++i) found.push_back(i * step);
  return found;
}

}  // namespace

double round_step(double least) {
  SPILLWAY_ASSERT(least > 0 && std::isfinite(least));
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - slack)) return factor * power;
  return 10 * power;
}

std::vector<double> round_ticks(double low, double high, int target) {
  if (high <= low) return {};
  return multiples(round_step((high - low) / std::max(target, 1)), low, high);
}

std::vector<double> decade_ticks(double low, double high, double most_decades) {
  SPILLWAY_ASSERT(low > 0);
  std::vector<double> found;
  const bool is_long = std::log10(high / low) > most_decades;
  for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = factor * std::pow(10, power);
      if (at >= low && at <= high && (!is_long || factor < 2)) found.push_back(at);
    }
  return found;
}

Axis::Axis(double low, double high, double from, double to, Kind kind)
    : low_(low), high_(high), from_(from), to_(to), kind_(kind) {
  SPILLWAY_ASSERT(low < high && (kind == Kind::linear || low > 0));
}

Axis Axis::from_zero(double most, double from, double to, int target) {
  const double step = round_step(std::max(most, 1e-9) / std::max(target, 1));
  Axis axis(0, step * std::ceil(most / step + 0.05), from, to);
  axis.step_ = step;
  return axis;
}

Axis Axis::around(double low, double high, double from, double to) {
  constexpr double room = 0.06;
  if (low > 0 && high / low > 12) {
    const double factor = std::pow(high / low, room);
    return {low / factor, high * factor, from, to, Kind::logarithmic};
  }
  if (high <= low) high = low + std::max(std::abs(low) * 0.1, 1e-9);
  const double below = low - room * (high - low), above = high + room * (high - low);
  return {low >= 0 ? std::max(0.0, below) : below, above, from, to};
}

double Axis::place(double value) const { return kind_ == Kind::logarithmic ? std::log(value) : value; }

double Axis::at(double value) const {
  return from_ + (to_ - from_) * (place(value) - place(low_)) / (place(high_) - place(low_));
}

std::vector<double> Axis::ticks(int target) const {
  constexpr double most_decades = 4;
  if (kind_ == Kind::logarithmic) return decade_ticks(low_, high_, most_decades);
  return step_ > 0 ? multiples(step_, low_, high_) : round_ticks(low_, high_, target);
}

std::vector<Tick> time_ticks(Picos span, int target) {
  const InUnit most = in_time_unit(span);
  return ticks(span.count(), target, most, most.unit == "us" ? "\xC2\xB5s" : most.unit, false);
}
std::vector<Tick> byte_ticks(Bytes span, int target) {
  const InUnit most = in_byte_unit(span);
  return ticks(span.count(), target, most, most.unit, true);
}

}  // namespace spillway
