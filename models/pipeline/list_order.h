// Orders found by playing a plan through once. An idle device takes, of what is ready, the earlier unit of
// micro-batches first, then a backward before a forward, the deeper position, the earlier micro-batch.
#pragma once

#include <cstdint>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"

namespace spillway::models {

struct ListRules {
  StageTimes times;
  // A route takes in its next micro-batch while its first device holds activations of fewer chunks than this. >= 1.
  std::int64_t held = 0;
  std::int64_t unit = 1;  // so many micro-batches make a unit; what belongs to an earlier one goes first. >= 1
};

// Fills the empty compute lanes of `plan` with forwards and whole backwards. Precondition: held >= 1, unit >= 1.
// O(operations x positions per device).
void write_list_order(PipelinePlan& plan, const ListRules& rules);

}  // namespace spillway::models
