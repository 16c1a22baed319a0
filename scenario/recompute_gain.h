// Whether recomputation that a step is generated with is worth its time.
#pragma once

#include <string>

#include "scenario/scenario.h"
#include "sim/replay/result.h"

namespace spillway::scenario {

// The sentence for a technique that lowers the peak of allocated memory by less than 0.5 %. Empty: it lowers it more,
// or one of the two peaks is not known. `does`: "ssdtrain stores 3.2 GiB".
std::string saves_nothing(const std::string& does, const MemoryResult& memory, Bytes plain_peak);

// The same of recomputation beside the step that keeps everything.
std::string recomputes_for_nothing(Recompute recompute, const Result& result, const Result& plain);
// Replays the plain step for it, if the scenario recomputes chosen modules or operators and nothing else moves tensors.
// Results of these may be held anyway. Throws InputError as run_briefly() does.
std::string recomputes_for_nothing(const Scenario& scenario, const Result& result);

}  // namespace spillway::scenario
