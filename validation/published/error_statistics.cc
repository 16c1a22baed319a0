#include "validation/published/error_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "base/quantile.h"

namespace spillway::validation {

double kendall_tau(std::span<const double> a, std::span<const double> b) {
  SPILLWAY_ASSERT(a.size() == b.size());
  double score = 0, untied_a = 0, untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const int side_a = (a[i] < a[j]) - (a[j] < a[i]);
      const int side_b = (b[i] < b[j]) - (b[j] < b[i]);
      score += side_a * side_b;
      untied_a += side_a != 0;
      untied_b += side_b != 0;
    }
  return untied_a > 0 && untied_b > 0 ? score / std::sqrt(untied_a * untied_b) : 0;
}

double kendall_ceiling(std::span<const double> a) {
  double pairs = 0, untied = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = i + 1; j < a.size(); ++j, ++pairs) untied += a[i] < a[j] || a[j] < a[i];
  return pairs > 0 ? std::sqrt(untied / pairs) : 1;
}

ErrorStatistics error_statistics(std::span<const double> measured, std::span<const double> predicted) {
  SPILLWAY_ASSERT(measured.size() == predicted.size());
  ErrorStatistics found;
  found.n = measured.size();
  if (found.n == 0) return found;
  std::vector<double> errors, sizes;
  for (std::size_t i = 0; i < found.n; ++i) {
    errors.push_back(predicted[i] / measured[i] - 1);
    sizes.push_back(std::abs(errors.back()));
    found.mean_abs += sizes.back() / static_cast<double>(found.n);
  }
  found.median = quantile(errors, 0.5);
  found.median_abs = quantile(sizes, 0.5);
  found.p90_abs = quantile(sizes, 0.9);
  found.worst_abs = quantile(sizes, 1);
  found.kendall_tau = kendall_tau(predicted, measured);
  found.kendall_ceiling = kendall_ceiling(measured);
  return found;
}

}  // namespace spillway::validation
