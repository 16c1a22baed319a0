// Is a plan one that can be run and means what it says? Shares nothing with the builders or the executor.
#pragma once

#include <string>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

// Throws InputError (file, place "device 2, operation 17 (B3)") at the first fault. Passes: an operation in the wrong
// lane or out of range; a pass on a device that doesn't hold it; a forward or backward missing or done twice. Order: W
// without its B, B without its W; a backward, recomputation or W before its input on the same device. Slices out of
// order: forwards need the keys and values of earlier slices, backwards those gradients of later ones. Copies: an
// offload before its forward, a reload before its offload, a backward that doesn't wait for its reload. Only running
// finds devices that wait for each other without end. O(operations).
void check_plan(const PipelinePlan& plan, const std::string& file = {});

}  // namespace spillway::models
