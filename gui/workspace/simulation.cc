#include "gui/workspace/simulation.h"

#include <utility>

namespace spillway::gui {

Simulation::Simulation(Answers answers, Worker::Post post) : answers_(std::move(answers)), worker_(1, std::move(post)) {
  worker_.on_failed = [this](const SimulationError& error) { answers_.failed(asked_, error); };
}

Simulation::~Simulation() = default;

std::uint64_t Simulation::ask(ScenarioText scenario, ReadRange range) {
  const std::uint64_t generation = asked_ = ++newest_;
  worker_.start([this, generation, scenario = std::move(scenario), range](const Worker::Task& task) {
    const auto progress = [&](const std::string& part, double fraction) {
      task.post([this, generation, part, fraction] { answers_.progress(generation, part, fraction); });
      return !task.is_stopped();
    };
    const std::shared_ptr<Outcome> outcome = simulate(scenario, range, captured_, progress);
    outcome->generation = generation;
    task.post([this, shared = std::shared_ptr<const Outcome>(outcome)] { answers_.outcome(shared); });
  });
  return generation;
}

void Simulation::ask_sensitivity(std::shared_ptr<const Outcome> outcome) {
  asked_ = outcome->generation;
  worker_.start([this, outcome = std::move(outcome)](const Worker::Task& task) {
    task.post([this, found = std::make_shared<const Sensitivity>(find_sensitivity(*outcome))] {
      answers_.sensitivity(found);
    });
  });
}

}  // namespace spillway::gui
