// Points of which none is better in everything: the Pareto front of values to be made small.
#pragma once

#include <cstddef>
#include <vector>

#include "studies/sweep/sweep_screen.h"

namespace spillway::studies {

class SweepFront {
 public:
  explicit SweepFront(std::size_t objectives) : objectives_(objectives) {}

  // Whether one of its points is as good in all objectives and better in one. O(points).
  [[nodiscard]] bool beats(const SweepValues& values) const;
  // Nothing when a point beats it; else takes those out that it beats.
  void add(const SweepValues& values);
  [[nodiscard]] const std::vector<SweepValues>& points() const { return points_; }

 private:
  [[nodiscard]] bool beats(const SweepValues& one, const SweepValues& other) const;

  std::size_t objectives_;
  std::vector<SweepValues> points_;
};

}  // namespace spillway::studies
