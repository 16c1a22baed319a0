// What people call a way that `fit` found: the field's own terms, in the order in which one would say them.
#pragma once

#include <string>
#include <vector>

#include "base/floors.h"
#include "models/spec/training_setup.h"

namespace spillway::studies {

// "Tensor parallel 4 x context parallel 2, ZeRO-3, Adam on the CPU, recompute whole layers, micro-batch 2 x accumulate
// 16": how the set-up spreads the step, and what else it has or `given` has not. `settings`: its edits; of keys that
// nothing above tells, key and value. `moved`: what techniques outside the set-up do, in words. Empty: nothing to say.
std::string way_name(const TrainingSetup& setup, const TrainingSetup& given, const std::vector<std::string>& settings,
                     const std::vector<std::string>& moved);

// "recompute whole layers", "recompute every third layer", "recompute 4 layers", "recompute attention".
std::string recomputed_words(const TrainingSetup& setup);

// With its first letter large.
std::string capitalized(std::string text);

}  // namespace spillway::studies
