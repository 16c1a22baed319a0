#include "cli/scenario_argument.h"

#include "cli/interrupt.h"

namespace spillway {

LoadedScenario load_argument(const std::string& path, const std::vector<std::string>& settings) {
  const Scenario scenario = is_scenario_file(path) ? load_scenario(path, settings) : scenario_for_trace(path, settings);
  ReadOptions read;
  read.progress = [](std::uint64_t, std::uint64_t) { return !is_interrupted(); };
  return load(scenario, read);
}

}  // namespace spillway
