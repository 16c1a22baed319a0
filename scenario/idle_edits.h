// Changes without effect: values of a machine that this step's figures don't depend on.
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// A sentence for each of the scenario's hardware.set that no replay of it reads, with the reason.
std::vector<std::string> idle_edits(const LoadedScenario& loaded);

}  // namespace spillway::scenario
