#include "gui/workspace/ways_search.h"

#include <algorithm>

#include "base/shell_word.h"
#include "scenario/scenario.h"
#include "studies/answer/fit_answer.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_known = 16;

std::string key_of(const ScenarioText& scenario, const WaysWish& wish) {
  return std::to_string(static_cast<int>(wish.goal)) + (wish.keeps_numerics ? "n" : "") + scenario.folder + "\n" +
         scenario.text;
}

studies::BaseScenario base_of(const ScenarioText& scenario) { return {scenario.text, scenario.name, scenario.folder}; }

}  // namespace

std::string with_edits(std::string text, const std::vector<std::string>& edits) {
  for (const std::string& edit : edits) text = with_setting(text, edit);
  return text;
}

WaysSearch::WaysSearch() {
  worker_.on_failed = [this](const SimulationError& error) { trouble_ = error.title; };
  worker_.on_end = [this] {
    if (on_state) on_state();
  };
}

void WaysSearch::stop() {
  outlines_.stop();
  if (!worker_.is_running()) return;
  worker_.stop();
  if (on_state) on_state();
}

void WaysSearch::end_early() {
  if (ends_ != nullptr) ends_->store(true);
}

void WaysSearch::start(const ScenarioText& scenario, const WaysWish& wish) {
  trouble_.clear();
  outlines_.stop();
  const std::string key = key_of(scenario, wish);
  for (const auto& [known, answer] : known_)
    if (known == key) {
      worker_.stop();
      if (on_answer) on_answer(answer);
      if (on_state) on_state();
      return;
    }
  ends_ = std::make_shared<std::atomic<bool>>(false);
  worker_.start(
      [this, scenario, wish, ends = ends_](const Worker::Task& task) { search(task, scenario, wish, *ends); });
  if (on_state) on_state();
}

// On the worker.
void WaysSearch::search(const Worker::Task& task, const ScenarioText& scenario, const WaysWish& wish,
                        const std::atomic<bool>& ends) {
  studies::FitQuestion question;
  question.what = scenario.name;
  question.goal = wish.goal;
  question.same_maths = wish.keeps_numerics;
  studies::FitOptions looking;
  looking.progress = [&](const std::string& what, std::size_t replays) {
    task.post([this, what, replays] {
      if (on_progress) on_progress(what, replays);
    });
    return !task.is_stopped() && !ends.load();
  };
  studies::FitFindings found =
      studies::find_ways(question, studies::fit_subject(question, base_of(scenario)), {}, looking);
  if (found.outcome.ways.empty()) return;
  studies::launch_ways(0, found);
  auto answer =
      std::make_shared<const studies::Answer>(studies::fit_answer(found, "spillway fit " + shell_word(scenario.name)));
  task.post([this, answer, key = key_of(scenario, wish), is_whole = !found.outcome.stopped] {
    if (is_whole) {
      if (known_.size() >= most_known) known_.erase(known_.begin());
      known_.emplace_back(key, answer);
    }
    if (on_answer) on_answer(answer);
  });
}

void WaysSearch::outline(const ScenarioText& scenario, std::size_t way, const std::vector<std::string>& edits) {
  outlines_.start([this, scenario, way, edits](const Worker::Task& task) {
    std::vector<studies::WayOutline> found = studies::way_outlines(base_of(scenario), edits);
    task.post([this, way, found = std::move(found)]() mutable {
      if (on_outline) on_outline(way, std::move(found));
    });
  });
}

}  // namespace spillway::gui
