// This room's rows of the table of techniques.
#pragma once

#include <vector>

#include "planners/technique.h"

namespace spillway::planners {

const std::vector<Technique>& order_techniques();

}  // namespace spillway::planners
