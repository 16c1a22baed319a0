// Names of ways that `fit` found: the field's own terms, in the order in which people say them.
#pragma once

#include <string>
#include <vector>

#include "base/floors.h"
#include "models/spec/training_setup.h"

namespace spillway::studies {

// Spread of the step, and what else the set-up has or `given` has not: "Tensor parallel 4 x context parallel 2, ZeRO-3,
// Adam on the CPU, recompute whole layers, micro-batch 2 x accumulate 16". `settings`: its edits; keys not named so far
// follow with their value. `moved`: what techniques outside the set-up do, in words. Empty: nothing to say.
std::string way_name(const TrainingSetup& setup, const TrainingSetup& given, const std::vector<std::string>& settings,
                     const std::vector<std::string>& moved);

// "recompute whole layers", "recompute every third layer", "recompute 4 layers", "recompute attention".
std::string recomputed_words(const TrainingSetup& setup);

// With its first letter large.
std::string capitalized(std::string text);

}  // namespace spillway::studies
