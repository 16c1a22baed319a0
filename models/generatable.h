// Which models the trace generator writes the training step of; more can be described and counted.
#pragma once

#include "models/model_spec.h"

namespace spillway {

// Throws InputError naming the first thing in the model that the generator does not know.
void require_generatable(const ModelSpec& model);

}  // namespace spillway
