// The machines of many scenarios, each made once: reading a profile and what was fitted for its GPU takes as long as a
// small replay. For any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

class SharedMachines {
 public:
  // ScenarioMachine(hardware_of(scenario)). Throws InputError as hardware_of() does.
  std::shared_ptr<const ScenarioMachine> of(const Scenario& scenario);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const ScenarioMachine>> machines_;  // by machine_key()
};

}  // namespace spillway::scenario
