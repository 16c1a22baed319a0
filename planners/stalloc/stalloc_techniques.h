// This room's rows of the table of techniques.
#pragma once

#include <string_view>
#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

inline constexpr std::string_view stalloc_paper_word = "stalloc-paper";

const std::vector<Technique>& stalloc_techniques();

}  // namespace spillway::planners
