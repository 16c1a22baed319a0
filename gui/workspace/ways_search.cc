#include "gui/workspace/ways_search.h"

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>

#include "base/stop.h"
#include "gui/workspace/simulation.h"
#include "scenario/scenario.h"
#include "studies/fit/fit_search.h"
#include "studies/techniques/compare_techniques.h"

namespace spillway::gui {
namespace {

constexpr std::int64_t most_replays = 60;

std::string with_all(std::string text, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) text = with_setting(text, setting);
  return text;
}

}  // namespace

WaysSearch::WaysSearch() = default;

WaysSearch::~WaysSearch() { stop(); }

void WaysSearch::stop() {
  if (state_ == nullptr) return;
  state_->stop = true;
  state_ = nullptr;
  if (on_state) on_state();
}

void WaysSearch::start(const ScenarioText& scenario) {
  stop();
  trouble_.clear();
  const auto state = state_ = std::make_shared<State>();
  const QPointer<WaysSearch> self = this;
  // On the window's thread, unless it is over by then.
  const auto post = [self, state](std::function<void(WaysSearch&)> work) {
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self, state, work = std::move(work)] {
          if (self != nullptr && self->state_ == state) work(*self);
        },
        Qt::QueuedConnection);
  };
  QThreadPool::globalInstance()->start([state, post, scenario] {
    const StopScope scope(&state->stop);
    std::string trouble;
    const auto found = [&](const studies::WayRow& row, const std::string& text, bool changes_maths) {
      if (!row.is_done || state->stop) return;
      post([way = ShownWay{row, text, changes_maths}](WaysSearch& search) {
        if (search.on_way) search.on_way(way);
      });
    };
    try {
      const studies::WaysScenario given{scenario.text, scenario.name, scenario.folder};
      const std::vector<studies::Way> ways = studies::technique_ways_of(given);
      studies::WaysOptions options;
      options.progress = [&](const studies::WayRow& row, std::size_t /*done*/, std::size_t /*all*/) {
        found(row, with_all(given.text, row.way.settings), false);
        return !state->stop;
      };
      static_cast<void>(studies::compare_techniques(given, ways, options));
      studies::FitQuestion question;
      question.what = scenario.name;
      question.replays = most_replays;
      const studies::FitSubject subject = studies::fit_subject(question, given);
      studies::FitOptions looking;
      looking.progress = [&](const std::string& /*what*/, std::size_t /*replays*/) { return !state->stop; };
      const studies::FitOutcome outcome = studies::find_fit(question, subject, looking);
      for (const studies::FitWay& way : outcome.ways)
        found(way.row, with_all(given.text, way.row.way.settings), way.changes_maths);
    } catch (const Cancelled&) {
      return;
    } catch (const std::exception& error) {
      trouble = describe_error(error).title;
    }
    post([trouble](WaysSearch& search) {
      search.state_ = nullptr;
      search.trouble_ = trouble;
      if (search.on_state) search.on_state();
    });
  });
}

}  // namespace spillway::gui
