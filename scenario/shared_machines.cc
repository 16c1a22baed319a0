#include "scenario/shared_machines.h"

namespace spillway::scenario {

std::shared_ptr<const ScenarioMachine> SharedMachines::of(const Scenario& scenario) {
  const std::string key = machine_key(scenario);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const ScenarioMachine>& machine = machines_[key];
  if (!machine) machine = std::make_shared<const ScenarioMachine>(hardware_of(scenario));
  return machine;
}

}  // namespace spillway::scenario
