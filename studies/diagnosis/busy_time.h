// When a GPU had something to do: the union of intervals, asked for its length within others.
#pragma once

#include <vector>

#include "base/units.h"

namespace spillway::studies {

struct TimeInterval {
  Picos begin{}, end{};  // half-open
};

class BusyTime {
 public:
  explicit BusyTime(std::vector<TimeInterval> intervals);
  [[nodiscard]] Picos within(Picos begin, Picos end) const;  // O(log n)
  [[nodiscard]] Picos length() const;                        // of all of them
  [[nodiscard]] const std::vector<TimeInterval>& parts() const { return parts_; }

 private:
  [[nodiscard]] Picos before(Picos time) const;
  std::vector<TimeInterval> parts_;  // ascending, apart from each other
  std::vector<Picos> sums_;          // of the parts before each
};

}  // namespace spillway::studies
