// The middle of repeated measurements, and how far they lie apart.
#pragma once

#include <vector>

namespace spillway::hwprofiles {

struct Spread {
  double median = 0;
  double relative = 0;  // half the interquartile range / median; 0 for fewer than four samples or a median of 0
};

// Quartiles between two samples are interpolated linearly. Precondition: not empty. O(n log n).
Spread spread_of(std::vector<double> samples);

}  // namespace spillway::hwprofiles
