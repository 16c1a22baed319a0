// A plan's passes through the chunks of a device, as far as generating a step from a model needs to know them.
#pragma once

#include <cstdint>
#include <vector>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

struct ChunkPasses {
  std::int64_t turns = 0;   // micro-batches that come through, one after another
  std::int64_t slices = 1;  // of each; forwards first to last, backwards last to first
  bool splits = false;      // some backward leaves its W for later
  bool recomputes = false;  // every pass goes forward once more before its backward
};

// By chunk of the device. O(operations of the device).
std::vector<ChunkPasses> chunk_passes(const PipelinePlan& plan, std::int64_t device);

// By micro-batch: how many micro-batches of its route have a lower number.
std::vector<std::int32_t> turns_of(const PipelinePlan& plan);

// Throws InputError (place "pipeline_schedule") where a plan is no order of a generated step. Reasons are activations
// that move by the plan's copy lanes, a pass missing or done twice, micro-batches or slices that overtake each other in
// one chunk. A chunk that recomputes some passes only, or slices, is another reason. O(operations).
void require_steps(const PipelinePlan& plan);

}  // namespace spillway::models
