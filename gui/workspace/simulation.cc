#include "gui/workspace/simulation.h"

#include <new>
#include <utility>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/stop.h"

namespace spillway::gui {

SimulationError describe_error(const std::exception& error) {
  if (const auto* input = dynamic_cast<const InputError*>(&error)) {
    std::string title = input->file();
    if (!input->place().empty()) title += (title.empty() ? "" : ", ") + input->place();
    return {title.empty() ? input->cause() : title + ": " + input->cause(), input->remedy()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {"this computer has too little memory for it", "read a shorter range of the trace, or close other programs"};
  return {std::string("internal error: ") + error.what(), "save the scenario and report it"};
}

Simulation::Simulation(Post post, Answers answers)
    : post_(std::move(post)), answers_(std::move(answers)), worker_([this] { work(); }) {}

Simulation::~Simulation() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = stop_ = true;
    cancelled_ = newest_;
  }
  asked_.notify_all();
  worker_.join();
}

std::uint64_t Simulation::ask(ScenarioText scenario, ReadRange range) {
  std::uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    generation = ++newest_;
    question_ = Question{generation, std::move(scenario), range};
    to_explain_ = nullptr;
    stop_ = true;
  }
  asked_.notify_all();
  return generation;
}

void Simulation::ask_sensitivity(std::shared_ptr<const Outcome> outcome) {
  {
    const std::lock_guard lock(mutex_);
    to_explain_ = std::move(outcome);
  }
  asked_.notify_all();
}

void Simulation::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = newest_;
  question_.reset();
  to_explain_ = nullptr;
  stop_ = true;
}

void Simulation::drop(std::shared_ptr<const Outcome> outcome) {
  if (outcome == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    dropped_.push_back(std::move(outcome));
  }
  asked_.notify_all();
}

bool Simulation::is_stale(std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return ends_ || generation < newest_ || generation <= cancelled_;
}

void Simulation::answer(const Question& question) {
  const auto progress = [this, generation = question.generation](const std::string& part, double fraction) {
    if (is_stale(generation)) return false;
    post_([this, generation, part, fraction] {
      if (!is_stale(generation)) answers_.progress(generation, part, fraction);
    });
    return true;
  };
  try {
    const std::shared_ptr<Outcome> outcome = simulate(question.scenario, question.range, captured_, progress);
    outcome->generation = question.generation;
    post_([this, shared = std::shared_ptr<const Outcome>(outcome)] {
      if (!is_stale(shared->generation)) answers_.outcome(shared);
    });
  } catch (const Cancelled&) {
    return;
  } catch (const std::exception& error) {
    post_([this, generation = question.generation, described = describe_error(error)] {
      if (!is_stale(generation)) answers_.failed(generation, described);
    });
  }
}

void Simulation::work() {
  const StopScope scope(&stop_);
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return ends_ || question_ || to_explain_ != nullptr || !dropped_.empty(); });
    if (ends_) return;
    if (!dropped_.empty()) {
      std::vector<std::shared_ptr<const Outcome>> dropped = std::exchange(dropped_, {});
      lock.unlock();
      dropped.clear();
      lock.lock();
      continue;
    }
    if (question_) {
      const Question question = std::move(*question_);
      question_.reset();
      stop_ = false;
      lock.unlock();
      answer(question);
      lock.lock();
      continue;
    }
    const std::shared_ptr<const Outcome> outcome = std::exchange(to_explain_, nullptr);
    stop_ = false;
    lock.unlock();
    try {
      auto found = std::make_shared<const Sensitivity>(find_sensitivity(*outcome));
      post_([this, found] {
        if (!is_stale(found->generation)) answers_.sensitivity(found);
      });
    } catch (const Cancelled&) {
    } catch (const std::exception& error) {
      post_([this, generation = outcome->generation, described = describe_error(error)] {
        if (!is_stale(generation)) answers_.failed(generation, described);
      });
    }
    lock.lock();
  }
}

}  // namespace spillway::gui
