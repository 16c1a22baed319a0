// The worker behind the window: one thread that always works on the newest state asked for.
//
//   ask(1) ask(2) ask(3)        1 is under way, 2 is never begun, 3 begins when 1 has stopped
//
// A newer question stops the older one, wherever it is (base/stop.h; reading stops within 8 MiB), and its answer
// is never delivered. Answers come through `post`, which must run what it is given on the window's thread, or
// drop it when the window is gone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gui/workspace/outcome.h"

namespace spillway::gui {

struct SimulationError {
  std::string title, remedy;  // what is wrong and where; how to mend it
};

class Simulation {
 public:
  using Post = std::function<void(std::function<void()>)>;
  struct Answers {
    std::function<void(std::shared_ptr<const Outcome>)> outcome;
    std::function<void(std::uint64_t generation, SimulationError)> failed;
    std::function<void(std::shared_ptr<const Sensitivity>)> sensitivity;
    std::function<void(std::uint64_t generation, const std::string& part, double fraction)> progress;
  };
  Simulation(Post post, Answers answers);
  // Stops what is under way, and waits until it has.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Returns the question's generation; larger is newer.
  std::uint64_t ask(ScenarioText scenario, ReadRange range = {});
  // What would help, of an outcome; dropped when a newer state is asked for first.
  void ask_sensitivity(std::shared_ptr<const Outcome> outcome);
  // Stops what is under way; its answer doesn't come.
  void cancel();
  // Frees an outcome on the worker, if nobody else holds it: gigabytes take longer than a window may stand still.
  void drop(std::shared_ptr<const Outcome> outcome);

 private:
  struct Question {
    std::uint64_t generation = 0;
    ScenarioText scenario;
    ReadRange range;
  };
  void work();
  void answer(const Question& question);
  [[nodiscard]] bool is_stale(std::uint64_t generation) const;

  Post post_;
  Answers answers_;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  std::optional<Question> question_;
  std::shared_ptr<const Outcome> to_explain_;
  std::vector<std::shared_ptr<const Outcome>> dropped_;
  std::uint64_t newest_ = 0;
  std::uint64_t cancelled_ = 0;  // all up to here
  bool ends_ = false;
  std::atomic<bool> stop_ = false;                 // what the worker is at; set and taken back under the mutex
  std::shared_ptr<const CapturedTrace> captured_;  // the worker's own
  std::thread worker_;                             // last: begins when all else is there
};

// What is wrong, in a sentence; how to mend it, in another.
SimulationError describe_error(const std::exception& error);

}  // namespace spillway::gui
