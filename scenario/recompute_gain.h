// Whether recomputation that a step is generated with is worth its time.
#pragma once

#include <string>

#include "scenario/scenario.h"
#include "sim/replay/result.h"

namespace spillway::scenario {

// The sentence for a technique without which the peak of what is allocated is no higher, but for 0.5 %. Empty: it is
// higher, or one of the two is not known. does: "ssdtrain stores 3.2 GiB".
std::string saves_nothing(const std::string& does, const MemoryResult& memory, Bytes plain_peak);

// The same of recomputation beside the step that keeps everything.
std::string recomputes_for_nothing(Recompute recompute, const Result& result, const Result& plain);
// The plain step is replayed for it, where the scenario recomputes chosen modules or operators, whose results may be
// held anyway, and nothing else moves tensors. Throws InputError as run_briefly() does.
std::string recomputes_for_nothing(const Scenario& scenario, const Result& result);

}  // namespace spillway::scenario
