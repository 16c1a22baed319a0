// Looks for ways to make a step fit, or faster, in the background: the techniques of `spillway techniques` first, which
// are there soon, then the search of `spillway fit`. Rows come as they are found, on the window's thread.
//
// Works in the application's thread pool; nobody waits for it: what is stopped ends by itself, and what it still finds
// is dropped.
#pragma once

#include <QObject>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/workspace/outcome.h"
#include "studies/ways/way_row.h"

namespace spillway::gui {

// A way, with the figures of its replay.
struct ShownWay {
  studies::WayRow row;
  std::string text;  // the scenario that it makes
  bool changes_maths = false;
};

class WaysSearch : public QObject {
 public:
  WaysSearch();
  ~WaysSearch() override;

  // In place of what is looked for. global_batch stays that of the scenario.
  void start(const ScenarioText& scenario);
  void stop();
  [[nodiscard]] bool is_running() const { return state_ != nullptr; }

  std::function<void(const ShownWay&)> on_way;
  std::function<void()> on_state;  // begins or ends
  // Why it ended without having looked at everything; empty: it has.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  struct State {
    std::atomic<bool> stop{false};
  };
  std::shared_ptr<State> state_;  // of what is under way; null: nothing
  std::string trouble_;
};

}  // namespace spillway::gui
