// A sweep run from the window: its file or one made of the scenario at hand, its points as they are replayed, the front
// growing; a point loads as the scenario.
#pragma once

#include <QWidget>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "gui/plots/charts.h"
#include "gui/workspace/scenario_document.h"
#include "gui/workspace/simulation.h"
#include "studies/sweep/sweep_file.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace spillway::gui {

class SweepView : public QWidget {
 public:
  SweepView();
  // Stops what is under way and waits for the points being replayed.
  ~SweepView() override;

  // Throws InputError. A store is shown with the points it has, and goes on from them.
  void open(const QString& file);
  void show_scenario(const ScenarioDocument* document, const Outcome* now, const Outcome* baseline);
  void set_theme(const Theme& theme);
  void start();
  // At once; points being replayed end behind the scenes, and nothing is heard of them.
  void stop();
  [[nodiscard]] bool is_running() const { return run_ != nullptr; }
  [[nodiscard]] ParetoChart& chart() { return *chart_; }

  // The scenario of a point: text, and the folder its paths are relative to.
  std::function<void(const std::string& text, const std::string& folder)> on_load;
  std::function<void(const SimulationError&)> on_error;
  std::function<void()> on_rows;
  void load_point(std::size_t row);

 private:
  // A sweep on a thread of its own.
  struct Run {
    std::atomic<bool> stops{false};
    std::thread worker;
  };
  void set_file(std::shared_ptr<const SweepFile> file, const QString& name, const std::string& store);
  void work(Run& run, const SweepFile& file, const std::string& store);
  // Has `then` done by the window, unless another run has taken this one's place.
  void post(const Run& run, std::function<void()> then);
  void ended(const Run& run);
  void show_running();
  void show_rows();

  ParetoChart* chart_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *start_, *make_;
  std::shared_ptr<const SweepFile> file_;
  std::string store_, scenario_, folder_;  // scenario_: what "sweep this scenario" takes
  std::vector<SweepRow> rows_;
  bool is_shown_ = true;                    // rows_ as they are
  std::vector<std::unique_ptr<Run>> runs_;  // until their threads have ended
  const Run* run_ = nullptr;                // the one whose points are shown; null: none is under way
};

}  // namespace spillway::gui
