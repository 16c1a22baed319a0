// A sweep run from the window: its file or one made of the scenario at hand, its points as they are replayed, the front
// growing. A point loads as the scenario. If the sweep's base is the scenario at hand, that is marked among the points.
// Else the sweep is a separate document.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gui/plots/charts.h"
#include "gui/workspace/scenario_document.h"
#include "gui/workspace/simulation.h"
#include "gui/workspace/worker.h"
#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_store.h"

class QLabel;
class QComboBox;
class QLineEdit;
class QProgressBar;
class QPushButton;

namespace spillway::gui {

class SweepView : public QWidget {
 public:
  SweepView();

  // Throws InputError. A store is shown with the points it has, and goes on from them.
  void open(const QString& file);
  // variant: id of the one at hand; -1: none.
  void show_scenario(int variant, const ScenarioDocument* document, const Outcome* now, const Outcome* baseline);
  // There is a sweep, and its base is not the scenario at hand.
  [[nodiscard]] bool is_alone() const { return file_ != nullptr && of_variant_ != variant_; }
  [[nodiscard]] bool is_of_scenario() const { return file_ != nullptr && !is_alone(); }
  [[nodiscard]] const QString& name() const { return name_; }  // of its file
  void set_theme(const Theme& theme);
  // Goes on where it was stopped.
  void start();
  // At once; points being replayed end behind the scenes, and nothing is heard of them.
  void stop();
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }
  [[nodiscard]] ParetoChart& chart() { return *chart_; }

  // The scenario of a point: text, and the folder its paths are relative to.
  std::function<void(const std::string& text, const std::string& folder)> on_load;
  std::function<void(const SimulationError&)> on_error;
  std::function<void()> on_rows;
  std::function<void()> on_file;  // another sweep, or none any more
  void load_point(std::size_t row);
  // Requirements for points on the front, besides the file's; none: only those. Points that were replayed stay.
  void require(std::optional<double> most_step_ms, std::optional<double> most_gib);

 protected:
  void focusInEvent(QFocusEvent* event) override;

 private:
  void take_requirements();
  QComboBox* measures(const QString& name, const QString& tip, SweepMeasure chosen);
  void clear_axes();
  void show_axes();
  void set_file(std::shared_ptr<const SweepFile> file, const QString& name, std::shared_ptr<SweepStore> store);
  void close_file();
  void show_buttons();
  void work(const Worker::Task& task, const SweepFile& file, SweepStore& store);
  void show_running();
  void show_rows();

  ParetoChart* chart_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *start_, *make_, *close_;
  std::shared_ptr<const SweepFile> file_;
  std::string scenario_, folder_;       // scenario_: what "sweep this scenario" takes
  int variant_ = -1, of_variant_ = -2;  // at hand; the base's variant, -2: none
  QString name_;
  std::shared_ptr<SweepStore> store_;  // what was replayed of file_, kept while it is
  std::optional<double> most_step_ms_, most_gib_;
  QLineEdit *step_, *memory_;
  QComboBox *across_, *up_, *color_;
  std::vector<SweepRow> rows_;
  bool is_shown_ = true;  // rows_ as they are
  Worker worker_{2};      // last; two: another sweep begins while points of the one before end
};

}  // namespace spillway::gui
