// Pictures of a sweep's answer. Colour alone never carries a meaning, and they are readable in greyscale.
#pragma once

#include <string>

#include "studies/sweep/sweep_map.h"
#include "studies/sweep/sweep_tornado.h"

namespace spillway::reports {

// "Step time (s)": the words of a picture's axis.
std::string objective_title(Objective objective);

// Simulated configurations over two objectives, and the front over these two. Dots on the sweep's own front have
// numbers that a list beside them explains, 14 at most.
std::string sweep_front_svg(const SweepFile& file, const SweepOutcome& outcome, Objective x, Objective y);

// The darker, the better; what is an estimate of the screen has a ~.
std::string sweep_map_svg(const SweepFile& file, const SweepMap& map, Objective objective);

// A bar per axis, from its best to its worst value, on a scale of the objective.
std::string sweep_tornado_svg(const SweepFile& file, const SweepTornado& tornado, Objective objective);

}  // namespace spillway::reports
