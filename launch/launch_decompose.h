// From a scenario's keys to a launch's facts: what launch_compose.h does, backwards.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "launch/launch_export.h"
#include "launch/launch_table.h"
#include "models/spec/training_setup.h"

namespace spillway::launch {

struct ScenarioFacts {
  std::map<std::string, std::string, std::less<>> facts;
  std::set<std::string, std::less<>> settled;  // keys with facts of other names, or without one
  std::vector<UnsaidKey> unsaid;
};

// `setup`: resolved, of the model `spec`. `format`: the program's. `gpus_per_node`: of the machine.
ScenarioFacts facts_of(const Scenario& scenario, const TrainingSetup& setup, const ModelSpec& spec, LaunchFormat format,
                       std::int64_t gpus_per_node);

}  // namespace spillway::launch
