// One point of a sweep as a separate scenario.
#pragma once

#include <cstdint>
#include <string>

#include "studies/sweep/sweep_file.h"

namespace spillway::studies {

// The scenario's text, its paths as seen from `to_folder`: `spillway run` of it gives the figures of the point's
// replay. Throws InputError for a number the sweep doesn't have, and for a point its rules leave out.
std::string point_scenario(const SweepFile& file, std::int64_t number, const std::string& to_folder);

}  // namespace spillway::studies
