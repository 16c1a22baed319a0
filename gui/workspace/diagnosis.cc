#include "gui/workspace/diagnosis.h"

#include <utility>

#include "scenario/scenario_memory.h"

namespace spillway::gui {

Diagnosed diagnose(std::shared_ptr<const Outcome> outcome) {
  Diagnosed found;
  const Scenario& scenario = outcome->loaded.scenario;
  const bool has_times = outcome->trace().has(Capability::times);
  if (has_times) found.step = studies::diagnose_capture(outcome->loaded, outcome->run);
  if (!scenario.trace.empty() && !has_times) {
    ReadOptions read;
    read.keep_stacks = true;
    found.memory =
        studies::diagnose_memory(read_captured(scenario, read), allocations_of(outcome->loaded, outcome->run).device);
  }
  found.of = std::move(outcome);
  return found;
}

Diagnoser::Diagnoser() {
  worker_.on_failed = [this](const SimulationError& error) {
    if (on_failed) on_failed(error);
  };
}

void Diagnoser::stop() { worker_.stop(); }

void Diagnoser::start(std::shared_ptr<const Outcome> outcome) {
  worker_.start([this, outcome = std::move(outcome)](const Worker::Task& task) {
    auto found = std::make_shared<const Diagnosed>(diagnose(outcome));
    task.post([this, found = std::move(found)] {
      if (on_found) on_found(found);
    });
  });
}

}  // namespace spillway::gui
