// Shorter orders by moving single passes: of a device, an operation swaps with its neighbour, or a weight gradient
// jumps to another place; kept if the plan still runs, keeps within memory and takes no longer.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway {

struct MoveRequest {
  StageTimes times;
  std::vector<double> limits;  // by device; empty: none
  ActivationRules rules;
  std::int64_t moves = 4'000;
  std::uint64_t seed = 1;
  std::function<bool()> progress;
};

// Backwards in one become B and W next to each other: a neighbour waits for B alone, memory stays as it is.
void split_backwards(PipelinePlan& plan);

// Returns the makespan reached. Plans with copies are left as they are. O(moves x operations).
Ticks improve_plan(PipelinePlan& plan, const MoveRequest& request);

}  // namespace spillway
