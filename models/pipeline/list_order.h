// Orders found by playing a plan through once: whenever a device is idle it takes, of what is ready, a backward before
// a forward, the deeper position first among forwards, the earlier micro-batch first.
#pragma once

#include <cstdint>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"

namespace spillway {

struct ListRules {
  StageTimes times;
  std::int64_t window = 0;  // micro-batches that may be under way at once, from first forward to last backward
};

// Fills the empty compute lanes of `plan` with forwards and whole backwards. Precondition: window >= 1.
// O(operations x positions per device).
void write_list_order(PipelinePlan& plan, const ListRules& rules);

}  // namespace spillway
