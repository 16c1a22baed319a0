// A step on one GPU of a framework without stage programs (parallel_trace.h): PyTorch modules, recorded whole, one
// micro-batch after another.
//
// Micro-batches behind the first three and before the last are alike, so one times their number stands for them. The
// load that the clock settles at is summed that way. A step may show few of them and say how many more there are
// (traces/step_fold.h).
#pragma once

#include <cstdint>
#include <optional>

#include "models/cost/cost_model.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "models/step/parallel_trace.h"
#include "traces/trace.h"

namespace spillway::models {

// `setup`: resolved, without stages (has_stages()). O(layers * micro-batches + parameters).
Trace generate_single_step(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost);

// The same step, showing `shown` of its micro-batches or a few more, so that `turns` goes into StepFold::times. None if
// micro-batches are too few or differ. None also if the GPU catches up with the host in the course of the step: then no
// two of them take equally long. O(layers * shown + parameters).
std::optional<FoldedTrace> generate_folded_single_step(const ModelSpec& model, const TrainingSetup& setup,
                                                       const CostModel& cost, std::int64_t shown, std::int64_t turns);

}  // namespace spillway::models
