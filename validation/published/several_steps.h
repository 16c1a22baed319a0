// Metrics that no one replay gives: how many layers train, and how two ways of training compare.
#pragma once

#include <functional>
#include <string>

#include "scenario/shared_machines.h"
#include "validation/published/case_file.h"

namespace spillway::validation {

using ModelNamed = std::function<ModelSpec(const std::string& name)>;

// The figure of a case with a metric that is_of_several(), in its unit. Layers are sought in steps of the pipeline's
// stages from the case's own number on. Each verdict is that of `spillway run`, the usual reserve kept free, and tight
// does not count. Throws InputError where a scenario can't be simulated, or where nothing trains.
double predict_of_several(const Case& one, const ModelNamed& model, SharedMachines& machines);

}  // namespace spillway::validation
