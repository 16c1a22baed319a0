// The SCENARIO argument of a command: a scenario file, or a trace to replay as captured.
#pragma once

#include <string>
#include <vector>

#include "planners/scenario_run.h"

namespace spillway {

// Reading can be interrupted. Throws InputError.
LoadedScenario load_argument(const std::string& path, const std::vector<std::string>& settings);

}  // namespace spillway
