// Provenance of the figures that the time of what binds rests on.
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/replay/result.h"

namespace spillway::studies {

// "measured", "assumed", ... of the profile's leaves behind what binds; each once, in the profile's order.
std::vector<std::string> binding_provenance(const Result& result, const HardwareProfile& hardware);

}  // namespace spillway::studies
