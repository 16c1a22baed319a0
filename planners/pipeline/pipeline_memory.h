// Activations each device of a pipeline holds over time, in micro-batches of its whole share: 1 is what all its chunks
// keep of one micro-batch.
//
//   F   takes its chunk's share at its start; where the pass is recomputed later, only the checkpoint
//   R   takes the rest
//   BW  gives all back at its end; B all but what W still needs, W the rest
//   O   gives it back at its end, L takes it at its start; a peer holds it from O's start to L's end
//
// Not counted: what a forward that is to be recomputed holds while it runs, weights, gradients, buffers of transfers,
// the loss.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/pipeline/pipeline_executor.h"

namespace spillway::planners {

struct ActivationRules {
  std::int64_t weight_part = 1'000'000;  // of a chunk's activations, in millionths: what W needs. All: B frees nothing
  std::int64_t checkpoint = 0;           // what a pass that is recomputed keeps
};

struct ActivationLevel {
  Ticks at = 0;
  double micro_batches = 0;
};

struct ActivationProfile {
  std::vector<double> peaks;                         // by device
  std::vector<std::vector<ActivationLevel>> levels;  // by device; each from its time on
};

// O(operations); at equal times what is given back counts first. Precondition: the timeline is the plan's.
std::vector<double> activation_peaks(const PipelinePlan& plan, const PipelineTimeline& timeline,
                                     const ActivationRules& rules = {});
ActivationProfile activation_profile(const PipelinePlan& plan, const PipelineTimeline& timeline,
                                     const ActivationRules& rules = {});

}  // namespace spillway::planners
