// How a scenario says what explain() tries: the factor on one of its speeds.
#pragma once

#include <string>
#include <string_view>

#include "base/floors.h"

namespace spillway::scenario {

inline constexpr double relaxation_factor = 2;  // of the setting, on top of what it is

// The key that makes the resource of a Relaxation so much faster, "what_if.compute"; empty: none does.
std::string setting_of_relaxation(std::string_view resource);

}  // namespace spillway::scenario
