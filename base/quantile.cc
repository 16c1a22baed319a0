#include "base/quantile.h"

namespace spillway {

double quantile(std::vector<double> values, double share) {
  SPILLWAY_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (at - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

double lower_quantile(std::vector<double> values, double share) {
  SPILLWAY_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace spillway
