#include "hwprofiles/calibrate/spread.h"

#include <algorithm>
#include <cstddef>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
  SPILLWAY_ASSERT(!samples.empty());
  std::sort(samples.begin(), samples.end());
  Spread spread{quantile(samples, 0.5), 0};
  if (samples.size() >= 4 && spread.median > 0)
    spread.relative = (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / spread.median;
  return spread;
}

}  // namespace spillway::hwprofiles
