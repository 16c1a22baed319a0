// Search for the edge where a verdict changes along an axis, with few trials.
//
//   candidates   0 1 2 3 ...  lower side ... | upper side ... count-1
//                                            edge
//
// The search doubles or halves from a first candidate until both sides are known, then goes inward. Inward it follows
// the line through the two innermost trials where a measure is known on both (memory grows nearly so), else it halves.
// One more candidate behind the edge is tried: verdicts that come back show that the axis is not monotone, and the
// search goes on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace spillway::studies {

struct EdgeTrial {
  bool is_lower = false;          // which side of the edge
  std::optional<double> measure;  // rises along the axis and changes sign at the edge; not known: none
};

struct VerdictEdge {
  std::optional<std::int64_t> lower;  // last candidate of the lower side
  std::optional<std::int64_t> upper;  // first one of the upper side; lower + 1 if both are there
  bool is_monotone = true;            // as far as tried
  std::int64_t trials = 0;
};

// Candidates 0 .. count - 1, count >= 1; first within them. `attempt` is called once per candidate. O(log count) of
// them, fewer where the measure is straight.
VerdictEdge find_edge(std::int64_t first, std::int64_t count, const std::function<EdgeTrial(std::int64_t)>& attempt);

}  // namespace spillway::studies
