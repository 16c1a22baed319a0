// Errors of predictions, as a reader of a table wants them.
#pragma once

#include <span>
#include <vector>

namespace spillway::validation {

struct ErrorStatistics {
  std::size_t n = 0;
  double median_abs = 0, p90_abs = 0, worst_abs = 0;  // of |relative error|
  double median = 0;                                  // signed: > 0 where predictions are too high
  double mean_abs = 0;
  double kendall_tau = 0;      // of predicted against measured; 0 for fewer than two cases
  double kendall_ceiling = 1;  // of predictions without ties in the order of the measured: < 1 where these have ties
};

// Kendall's tau-b: (concordant - discordant) / sqrt((pairs - ties in a)(pairs - ties in b)), M. Kendall, "The treatment
// of ties in ranking problems", Biometrika 33 (1945). 0 when one side is all ties. Precondition: equal lengths. O(n^2).
double kendall_tau(std::span<const double> a, std::span<const double> b);

// Tau-b of `a` and the same order with its ties broken: sqrt((pairs - ties) / pairs). 1 for fewer than two. O(n^2).
double kendall_ceiling(std::span<const double> a);

// relative error = predicted / measured - 1. Precondition: equal lengths, measured > 0.
ErrorStatistics error_statistics(std::span<const double> measured, std::span<const double> predicted);

}  // namespace spillway::validation
