// The least a GPU holds of a model's state, without a replay: weights, master weights, optimizer state.
//
//   P / (t p)  parameters on the fullest stage, at least      t tensor-parallel, p stages, e expert-parallel
//   w          bytes of a weight                               / (d c) under ZeRO 3
//   s          bytes of master weight and moments              / (d c) under ZeRO 1 and up
//
// State on the host or on drives (optimizer_device, weight_device, offloaded_states) doesn't count.
// A lower bound: what isn't split t ways, the stages' unequal shares, gradients and padding come on top.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::studies {

// `setup` as resolve() gave it. O(layers).
Bytes least_state_bytes(const ModelSpec& model, const TrainingSetup& setup);

}  // namespace spillway::studies
