// The models that the trace generator writes a training step of; more can be described and counted.
#pragma once

#include "hwprofiles/gpu_profile.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// Throws InputError naming the first thing in the model that the generator does not know.
void require_generatable(const ModelSpec& model);
// The same for the model in a set-up, which is resolved.
void require_generatable(const ModelSpec& model, const TrainingSetup& setup);
// Throws InputError when the GPU has no arithmetic for the set-up's precision that a wider one could not stand in for.
void require_precision(const TrainingSetup& setup, const GpuProfile& gpu);

}  // namespace spillway::models
