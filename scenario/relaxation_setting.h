// How a scenario says what explain() tries: the factor on one of its speeds.
#pragma once

#include <string>
#include <string_view>

#include "sim/replay/result.h"

namespace spillway::scenario {

inline constexpr double relaxation_factor = 2;  // of the setting, on top of what it is

// The key that makes the resource of a Relaxation so much faster, "what_if.compute"; empty: none does.
std::string setting_of_relaxation(std::string_view resource);

// Of the critical path, 0 .. 1: the part that goes through what a Relaxation makes faster. It is no gain: half of it
// may go, less where another chain of waits then ends the step, more where what waited for it gets out of the way.
double path_share_of_relaxation(std::string_view resource, const Result& result);

}  // namespace spillway::scenario
