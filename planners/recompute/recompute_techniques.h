// This room's rows of the table of techniques.
#pragma once

#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

inline constexpr std::string_view recompute_word = "recompute";  // of any step

const std::vector<Technique>& recompute_techniques();

}  // namespace spillway::planners
