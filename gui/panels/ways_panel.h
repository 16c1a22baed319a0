// "Make it fit": the ways that were found, ranked. Moving along the rows, or pointing at one, previews it; Enter or
// Apply makes it, as one step that can be undone.
#pragma once

#include <QTimer>
#include <QWidget>
#include <functional>
#include <string>

#include "gui/canvas/theme.h"
#include "gui/panels/ways_model.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTableView;

namespace spillway::gui {

class WaysPanel : public QWidget {
 public:
  WaysPanel();
  void set_theme(const Theme& theme);
  // What ways are to be of; none is looked for yet.
  void show(std::shared_ptr<const Outcome> outcome);
  // Looks for ways of it, where it has not.
  void search();
  void stop();
  [[nodiscard]] WaysModel& model() { return model_; }
  [[nodiscard]] QTableView& table() { return *table_; }
  [[nodiscard]] bool is_searching() const { return search_.is_running(); }

  std::function<void(const ShownWay&)> on_apply, on_variant;
  std::function<void(const std::string& text)> on_preview;  // empty: none

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_columns();
  void show_state();
  void point_at(int row);
  void apply(bool as_variant = false);

  WaysModel model_;
  WaysSearch search_;
  ScenarioText scenario_;
  bool searched_ = false;
  QTableView* table_;
  QLabel *title_, *state_;
  QPushButton *apply_, *same_maths_, *stop_;
  QComboBox* order_;
  const Theme* theme_;
  QTimer pointed_;
  int pointed_row_ = -1;
};

}  // namespace spillway::gui
