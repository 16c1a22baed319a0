// Nelder and Mead's downhill simplex (Computer Journal 7(4), 1965) with the coefficients that Gao and Han (2012) adapt
// to the dimension, inside a box. Each parameter is searched through a logistic curve between its bounds.
// Deterministic; restarted a few times from the best point.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace spillway::models::fit {

struct Bounded {
  double low = 0, high = 1, start = 0.5;  // low < high; start is moved inside when it lies on a bound
};

// The best point found. Precondition: at least one parameter, evaluations > 0.
std::vector<double> simplex_search(std::span<const Bounded> box,
                                   const std::function<double(std::span<const double>)>& loss, int evaluations,
                                   int restarts);

}  // namespace spillway::models::fit
