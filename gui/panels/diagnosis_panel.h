// Why a recorded step is slow, in the order of what relaxing it would give; a click goes to its place on the canvas.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <string>

#include "gui/canvas/theme.h"
#include "gui/workspace/diagnosis.h"

class QLabel;
class QModelIndex;
class QStandardItem;
class QStandardItemModel;
class QTreeView;

namespace spillway::gui {

// A row's subject: where it is found on the canvas.
struct DiagnosedPlace {
  enum class Kind : std::uint8_t { none, work, host, operators, stretch } kind = Kind::none;
  std::string name;        // of the work, the operator or the host's call
  std::int64_t begin = 0;  // of an interval, as recorded, picoseconds
};

class DiagnosisPanel : public QWidget {
 public:
  DiagnosisPanel();
  void set_theme(const Theme& theme);
  // Sets the outcome to diagnose; search() does it.
  void show(std::shared_ptr<const Outcome> outcome);
  // Where it was not yet.
  void search();
  void stop();
  [[nodiscard]] bool is_searching() const { return diagnoser_.is_running(); }
  [[nodiscard]] std::shared_ptr<const Diagnosed> diagnosed() const { return diagnosed_; }
  [[nodiscard]] QTreeView& rows() { return *rows_; }

  std::function<void()> on_found;
  std::function<void(const DiagnosedPlace&)> on_go;

 private:
  [[nodiscard]] bool is_capture() const;
  void fill();
  void fill_step(const studies::StepDiagnosis& found);
  void fill_memory(const studies::MemoryDiagnosis& found);
  QStandardItem* section(const QString& title, const QString& detail);
  void choose(const QModelIndex& at);

  std::shared_ptr<const Outcome> outcome_;
  std::shared_ptr<const Diagnosed> diagnosed_;
  bool searched_ = false;
  QLabel* title_;
  QTreeView* rows_;
  QStandardItemModel* model_;
  Diagnoser diagnoser_;
};

}  // namespace spillway::gui
