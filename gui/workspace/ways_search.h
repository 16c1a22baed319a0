// Looks for ways to make a step fit, or faster, in the background: the techniques of `spillway techniques` first, which
// are there soon, then the search of `spillway fit`. Rows come as they are found, on the window's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/workspace/outcome.h"
#include "gui/workspace/worker.h"
#include "studies/candidates/row.h"

namespace spillway::gui {

// A way, with the figures of its replay.
struct ShownWay {
  studies::Row row;
  std::string text;  // the scenario that it makes
  bool changes_maths = false;
};

class WaysSearch {
 public:
  WaysSearch();

  // In place of what is looked for. global_batch stays that of the scenario.
  void start(const ScenarioText& scenario);
  void stop();
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }

  std::function<void(const ShownWay&)> on_way;
  std::function<void()> on_state;  // begins or ends
  // Why it ended without having looked at everything; empty: it has.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  void search(const Worker::Task& task, const ScenarioText& scenario);
  std::string trouble_;
  Worker worker_{2};  // last: ends before what it works on; two: a new search begins while the old one ends
};

}  // namespace spillway::gui
