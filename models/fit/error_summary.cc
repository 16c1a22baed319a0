#include "models/fit/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/quantile.h"

namespace spillway::models::fit {

void Errors::add(double predicted, double measured) { absolute_.push_back(std::abs(predicted / measured - 1)); }

ErrorSummary Errors::summary() const {
  if (absolute_.empty()) return {};
  const double count = static_cast<double>(absolute_.size());
  const auto at = [this](double share) { return lower_quantile(absolute_, share); };
  // From the least to the largest: the sum doesn't depend on the order of the rows.
  std::vector<double> sorted = absolute_;
  std::sort(sorted.begin(), sorted.end());
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {absolute_.size(), at(0.5), sum / count, at(0.9), at(0.68)};
}

std::string to_text(const ErrorSummary& summary) {
  return fmt::format("median {:.1f} %, mean {:.1f} %, p90 {:.1f} % of {} rows", 100 * summary.median,
                     100 * summary.mean, 100 * summary.p90, summary.count);
}

}  // namespace spillway::models::fit
