#include "studies/sweep/sweep_front.h"

#include <algorithm>

namespace spillway::studies {

bool SweepFront::beats(const SweepValues& one, const SweepValues& other) const {
  bool better = false;
  for (std::size_t i = 0; i < objectives_; ++i) {
    if (one[i] > other[i]) return false;
    better |= one[i] < other[i];
  }
  return better;
}

bool SweepFront::beats(const SweepValues& values) const {
  return std::any_of(points_.begin(), points_.end(), [&](const SweepValues& point) { return beats(point, values); });
}

void SweepFront::add(const SweepValues& values) {
  if (beats(values)) return;
  std::erase_if(points_, [&](const SweepValues& point) { return beats(values, point) || point == values; });
  points_.push_back(values);
}

}  // namespace spillway::studies
