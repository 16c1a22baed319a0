// A sweep around a scenario: what is most often asked next, with the work of a step held equal.
#pragma once

#include <string>

#include "base/floors.h"

namespace spillway::studies {

// The file of a sweep (sweep_file.h) over the micro-batch, recomputation and the place of activations, around a
// scenario of a model. Every point trains as many sequences a step as the scenario does: a smaller micro-batch
// accumulates more often; what is ranked is time per token, and memory. scenario_text: JSON, as parse_scenario() takes
// it. Throws InputError where that is no JSON.
std::string sweep_around(const std::string& scenario_text);

}  // namespace spillway::studies
