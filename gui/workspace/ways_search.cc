#include "gui/workspace/ways_search.h"

#include "scenario/scenario.h"
#include "studies/candidates/compare_techniques.h"
#include "studies/fit/fit_search.h"

namespace spillway::gui {
namespace {

constexpr std::int64_t most_replays = 60;

std::string with_all(std::string text, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) text = with_setting(text, setting);
  return text;
}

}  // namespace

WaysSearch::WaysSearch() {
  worker_.on_failed = [this](const SimulationError& error) { trouble_ = error.title; };
  worker_.on_end = [this] {
    if (on_state) on_state();
  };
}

void WaysSearch::stop() {
  if (!worker_.is_running()) return;
  worker_.stop();
  if (on_state) on_state();
}

void WaysSearch::start(const ScenarioText& scenario) {
  trouble_.clear();
  worker_.start([this, scenario](const Worker::Task& task) { search(task, scenario); });
}

// On the worker.
void WaysSearch::search(const Worker::Task& task, const ScenarioText& scenario) {
  const auto found = [&](const studies::Row& row, const std::string& text, bool changes_maths) {
    if (!row.is_done) return;
    task.post([this, way = ShownWay{row, text, changes_maths}] {
      if (on_way) on_way(way);
    });
  };
  const studies::BaseScenario given{scenario.text, scenario.name, scenario.folder};
  const std::vector<studies::Candidate> ways = studies::technique_candidates(given);
  studies::EvaluateOptions options;
  options.progress = [&](const studies::Row& row, std::size_t /*done*/, std::size_t /*all*/) {
    found(row, with_all(given.text, row.candidate.edits), false);
    return !task.is_stopped();
  };
  static_cast<void>(studies::compare_techniques(given, ways, options));
  studies::FitQuestion question;
  question.what = scenario.name;
  question.replays = most_replays;
  const studies::FitSubject subject = studies::fit_subject(question, given);
  studies::FitOptions looking;
  looking.progress = [&](const std::string& /*what*/, std::size_t /*replays*/) { return !task.is_stopped(); };
  const studies::FitOutcome outcome = studies::find_fit(question, subject, looking);
  for (const studies::FitWay& way : outcome.ways)
    found(way.row, with_all(given.text, way.row.candidate.edits), way.changes_maths);
}

}  // namespace spillway::gui
