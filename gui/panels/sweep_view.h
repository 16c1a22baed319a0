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

// A sweep of a scenario over what is most often asked: micro-batch, recomputation, offload, ZeRO. JSON text.
std::string sweep_of(const std::string& scenario_text);

class SweepView : public QWidget {
 public:
  explicit SweepView(Simulation::Post post);
  // Stops a sweep under way and waits for the points being replayed.
  ~SweepView() override;

  // Throws InputError. A store is shown with the points it has, and goes on from them.
  void open(const QString& file);
  void show_scenario(const ScenarioDocument* document, const Outcome* now, const Outcome* baseline);
  void set_theme(const Theme& theme);
  void start();
  void stop();
  [[nodiscard]] bool is_running() const { return worker_.joinable(); }
  [[nodiscard]] ParetoChart& chart() { return *chart_; }

  // The scenario of a point: text, and the folder its paths are relative to.
  std::function<void(const std::string& text, const std::string& folder)> on_load;
  std::function<void(const SimulationError&)> on_error;
  std::function<void()> on_rows;
  void load_point(std::size_t row);

 private:
  void set_file(std::shared_ptr<const SweepFile> file, const QString& name, const std::string& store);
  void run(const std::shared_ptr<const SweepFile>& file, const std::string& store);
  void finished();
  void show_rows();

  Simulation::Post post_;
  ParetoChart* chart_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *start_, *make_;
  std::shared_ptr<const SweepFile> file_;
  std::string store_, scenario_, folder_;  // scenario_: what "sweep this scenario" takes
  std::vector<SweepRow> rows_;
  std::atomic<bool> stops_{false};
  bool is_shown_ = true;  // rows_ as they are
  std::thread worker_;
};

}  // namespace spillway::gui
