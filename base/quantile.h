// Order statistics. Values come in any order; at least one.
#pragma once

#include <algorithm>
#include <vector>

#include "base/input_error.h"

namespace spillway {

// The quantile of a share in [0, 1], linear between order statistics at (n - 1) share (R's type 7).
[[nodiscard]] double quantile(std::vector<double> values, double share);

// One of the values: the last at or before (n - 1) share.
[[nodiscard]] double lower_quantile(std::vector<double> values, double share);

// The median; the larger one of two values in the middle.
template <class T>
[[nodiscard]] T upper_median(std::vector<T> values) {
  SPILLWAY_ASSERT(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace spillway
