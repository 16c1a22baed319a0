// Searches for ways to make a step fit, or faster, in the background: the answer of `spillway fit`. Answers are kept by
// scenario, so that an edit that is taken back needs no new search.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gui/workspace/outcome.h"
#include "gui/workspace/worker.h"
#include "studies/answer/answer.h"
#include "studies/fit/fit_question.h"

namespace spillway::gui {

struct WaysWish {
  studies::FitGoal goal = studies::FitGoal::speed;
  bool keeps_numerics = false;
};

class WaysSearch {
 public:
  WaysSearch();

  // Replaces the search under way. A known answer is reported at once.
  void start(const ScenarioText& scenario, const WaysWish& wish);
  // With the best so far.
  void end_early();
  // With nothing.
  void stop();
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }
  // The memory of one of the answer's ways over time.
  void outline(const ScenarioText& scenario, std::size_t way, const std::vector<std::string>& edits);

  std::function<void(std::shared_ptr<const studies::Answer>)> on_answer;
  std::function<void(std::size_t way, std::vector<studies::WayOutline>)> on_outline;
  std::function<void(const std::string& what, std::size_t replays)> on_progress;
  std::function<void()> on_state;  // begins or ends
  // Why there is no answer; empty: nothing is wrong.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  void search(const Worker::Task& task, const ScenarioText& scenario, const WaysWish& wish,
              const std::atomic<bool>& ends);

  std::string trouble_;
  std::vector<std::pair<std::string, std::shared_ptr<const studies::Answer>>> known_;  // newest last; by its question
  std::shared_ptr<std::atomic<bool>> ends_;
  Worker outlines_{2}, worker_{2};  // last: end before what they work on; two threads: the old may still be ending
};

// The scenario with the edits made, as --set makes them.
std::string with_edits(std::string text, const std::vector<std::string>& edits);

}  // namespace spillway::gui
