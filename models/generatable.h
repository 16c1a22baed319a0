// Which models the trace generator writes the training step of; more can be described and counted.
#pragma once

#include "models/model_spec.h"
#include "models/training_setup.h"

namespace spillway {

// Throws InputError naming the first thing in the model that the generator does not know.
void require_generatable(const ModelSpec& model);
// The same for the model in a set-up, which is resolved.
void require_generatable(const ModelSpec& model, const TrainingSetup& setup);

}  // namespace spillway
