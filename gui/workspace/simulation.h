// The worker behind the window: always works on the newest state asked for (worker.h). A newer question stops the older
// one, wherever it is (base/stop.h; reading stops within 8 MiB), and its answer is never delivered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gui/workspace/outcome.h"
#include "gui/workspace/worker.h"

namespace spillway::gui {

class Simulation {
 public:
  struct Answers {
    std::function<void(std::shared_ptr<const Outcome>)> outcome;
    std::function<void(std::uint64_t generation, SimulationError)> failed;
    std::function<void(std::shared_ptr<const Sensitivity>)> sensitivity;
    std::function<void(std::uint64_t generation, const std::string& part, double fraction)> progress;
  };
  explicit Simulation(Answers answers, Worker::Post post = {});
  // Stops what is under way, and waits until it has.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Returns the question's generation; larger is newer.
  std::uint64_t ask(ScenarioText scenario, ReadRange range = {});
  // Finds what would help, for the outcome that was asked for last; dropped when a newer state is asked for first.
  void ask_sensitivity(std::shared_ptr<const Outcome> outcome);
  // Stops what is under way; its answer doesn't come.
  void cancel() { worker_.stop(); }
  void drop(std::shared_ptr<const Outcome> outcome) { worker_.release(std::move(outcome)); }

 private:
  Answers answers_;
  std::uint64_t newest_ = 0, asked_ = 0;           // asked_: what errors are of
  std::shared_ptr<const CapturedTrace> captured_;  // the worker's own
  Worker worker_;                                  // last: ends before what it works on
};

}  // namespace spillway::gui
