// Search for the tensors to recompute, and when, with every saved tensor a separate choice. That includes a layer's
// inputs and outputs, what lies outside the layers, and steps that have none.
//
//   tensor     stays, or comes back before one of the moments: the first backward uses of saved tensors, up to its own
//   search     depth first over the tensors; a branch ends when the writers of what has gone already take longer than
//              the best plan's repeats. At its leaves the closure (closure.h) says what runs again, and a replay what
//              that means
//
// A good plan to begin with, of exact.h or of the searches over layers, makes the search small. Steps of more tensors
// than `most_searched` only improve on that plan: a tensor's choice is changed while that makes the step faster.
// Optimal among plans in which each tensor is away once, if `leaves` suffice and the step is as long as its kernels.
#pragma once

#include <cstdint>
#include <functional>

#include "planners/recompute/closure.h"
#include "planners/recompute/recompute_run.h"

namespace spillway::planners {

inline constexpr std::size_t most_searched = 12;

struct TensorSearchLimits {
  Bytes least{};                 // smaller tensors stay
  std::int64_t leaves = 20'000;  // at most, each one a query of closures
  std::int64_t replays = 1'000;  // at most
};

using ReplayAway = std::function<RecomputeCase(AwayUntil)>;

// From `start`, never worse than it: fitting, else short of less; then faster. Deterministic.
RecomputeCase search_tensors(RecomputeIndex& index, const RecomputeCase& start, const ReplayAway& replay,
                             const TensorSearchLimits& limits);

// The saved tensors' places under a plan's recomputations.
AwayUntil away_of(const OffloadPlan& plan, const RecomputeIndex& index);

// Whether `a` is the better answer: fitting, else short of less; then faster.
bool is_preferred(const RecomputeCase& a, const RecomputeCase& b);

}  // namespace spillway::planners
