// Shorter orders by moving single passes, under simulated annealing (Kirkpatrick et al. 1983): what gets longer is kept
// with a probability that falls to nothing.
//
// The neighbourhood is that of job shops (Balas & Vazacopoulos 1998): of the longest path, take the operations that one
// device does without a pause. One of them moves to the front or the back, or past the front into the pause. Memory
// binds here, so two moves are added. An order that holds too much is repaired, by doing a weight gradient sooner or by
// recomputing a pass held over the place. Recomputations are taken out where memory allows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::planners {

struct MoveRequest {
  StageTimes times;
  std::vector<double> limits;  // by device; empty: none
  ActivationRules rules;
  bool recompute = true;  // passes may be recomputed one by one
  std::int64_t moves = 4'000;
  std::uint64_t seed = 1;
  std::function<bool()> progress;
};

// Backwards in one become B and W next to each other: a neighbour waits for B alone, memory stays as it is.
void split_backwards(PipelinePlan& plan);

// Returns the makespan reached, never longer than the plan's. Plans that LaneOrders doesn't cover, or that hold too
// much, are left as they are. O(moves x operations).
Ticks improve_plan(PipelinePlan& plan, const MoveRequest& request);

}  // namespace spillway::planners
