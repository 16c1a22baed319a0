#include "gui/workspace/diagnosis.h"

#include <utility>

#include "scenario/scenario_memory.h"
#include "studies/answer/snapshot_answer.h"

namespace spillway::gui {

Diagnosed diagnose(std::shared_ptr<const Outcome> outcome) {
  Diagnosed found;
  const Scenario& scenario = outcome->loaded.scenario;
  const bool has_times = outcome->trace().has(Capability::times);
  if (has_times) found.step = studies::diagnose_capture(outcome->loaded, outcome->run);
  if (!scenario.trace.empty() && !has_times) {
    const Trace& trace = outcome->trace();
    AllocationStreamOptions options = allocations_of(outcome->loaded, outcome->run);
    options.pool.device_memory = MemoryPoolOptions().device_memory;  // what a setting saves is known of all requests
    found.memory = studies::diagnose_memory(trace, options.device);
    const std::vector<MemoryKnob> knobs =
        found.memory->ran_out ? std::vector<MemoryKnob>() : try_memory_knobs(trace, options);
    found.answer =
        studies::snapshot_answer(trace, options.device, *found.memory, knobs, scenario.title, {}, &outcome->result());
  } else {
    found.answer = studies::step_answer(outcome->loaded, outcome->run, found.step, {});
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
