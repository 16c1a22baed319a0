// From the recorded to the replayed time of one host thread: host calls are at the same place on both, what lies
// between two of them in proportion. Operators and annotations were recorded, not simulated; so they are placed.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::studies {

class HostClock {
 public:
  // O(ops log ops).
  HostClock(const Trace& trace, const Result& result, LaneId thread);
  // No call of the thread was both recorded with a time and replayed: nothing can be placed.
  [[nodiscard]] bool empty() const { return anchors_.empty(); }
  // Picoseconds of the replay, not before 0. Precondition: not empty(). O(log ops).
  [[nodiscard]] std::int64_t replayed(std::int64_t recorded) const;

 private:
  struct Anchor {
    std::int64_t recorded, replayed;
  };
  std::vector<Anchor> anchors_;  // ascending on both clocks
};

}  // namespace spillway::studies
