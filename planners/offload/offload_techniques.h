// This room's rows of the table of techniques.
#pragma once

#include <string_view>
#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

inline constexpr std::string_view cpu_optimizer_word = "cpu-optimizer";

const std::vector<Technique>& offload_techniques();
// Whether the technique of this name moves no more than the step needs to fit, in the end nothing.
bool moves_as_needed(std::string_view technique);

}  // namespace spillway::planners
