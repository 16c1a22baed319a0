// One value of a capacity search under one technique, judged.
#pragma once

#include <string>
#include <vector>

#include "studies/capacity/capacity.h"

namespace spillway::studies {

// The technique's edits go on top of the request's. Errors of the scenario become CapacityTrial::why_not.
// is_shown: with what only an answer shows, owners of the peak and what a step that does not fit is short of.
CapacityTrial judge_value(const CapacityRequest& request, const CapacityTechnique& technique, std::int64_t value,
                          SharedMachines& machines, bool is_shown = false);

// Single changes of a scenario that may let `answer` go one step further, tried on the value behind its edge, in
// parallel: recomputation, ZeRO, offloading, allocator, memory, GPUs. Changes already made are left out.
std::vector<FurtherChange> try_changes(const CapacityRequest& request, const CapacityAnswer& answer,
                                       SharedMachines& machines);

}  // namespace spillway::studies
