#include "models/cost/gpu_power.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr int halvings = 40;

double squared_voltage(const GpuPower& power, double clock) {
  const double voltage = 1 - power.voltage_slope * (1 - clock);
  return voltage * voltage;
}

// The highest clock in [least_clock_share, most] at which `draw`, which rises with it, is within the limit.
template <class Draw>
double highest_within(const GpuPower& power, double most, const Draw& draw) {
  if (power.limit_watts <= 0 || draw(most) <= power.limit_watts) return most;
  double low = std::min(least_clock_share, most), high = most;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (draw(middle) <= power.limit_watts ? low : high) = middle;
  }
  return low;
}

}  // namespace

double PowerLoad::seconds(double clock) const {
  return std::max(other_seconds + clocked_seconds / clock, least_seconds);
}

double work_joules(const GpuPower& power, const PowerLoad& load, double clock) {
  return load.chip_joules * squared_voltage(power, clock) + load.memory_joules;
}

double watts(const GpuPower& power, const PowerLoad& load, double clock) {
  const double seconds = load.seconds(clock);
  SPILLWAY_ASSERT(seconds > 0);
  return power.idle_watts + work_joules(power, load, clock) / seconds;
}

double settled_clock(const GpuPower& power, const PowerLoad& load, double most) {
  if (load.clocked_seconds <= 0) return most;
  return highest_within(power, most, [&](double clock) { return watts(power, load, clock); });
}

double product_clock(const GpuPower& power, double full_watts) {
  return highest_within(
      power, 1, [&](double clock) { return power.idle_watts + full_watts * clock * squared_voltage(power, clock); });
}

double full_product_watts(const GpuPower& power, double share) {
  return (power.limit_watts - power.idle_watts) / (share * squared_voltage(power, share));
}

}  // namespace spillway::models
