// This room's rows of the table of techniques.
#pragma once

#include <string_view>
#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

inline constexpr std::string_view cpu_optimizer_word = "cpu-optimizer";

const std::vector<Technique>& offload_techniques();

}  // namespace spillway::planners
