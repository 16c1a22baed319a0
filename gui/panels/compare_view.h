// Variants side by side: a small picture of each one's memory over the step, on one scale, above the table.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/panels/compare_model.h"

class QLabel;
class QTableView;

namespace spillway::gui {

class CompareView : public QWidget {
  Q_OBJECT

 public:
  CompareView();
  void show_variants(std::vector<ComparedVariant> variants);
  void set_theme(const Theme& theme);
  [[nodiscard]] CompareModel& model() { return model_; }
  [[nodiscard]] QTableView& table() { return *table_; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  class Curves;
  void fit();
  CompareModel model_;
  Curves* curves_;
  QTableView* table_;
  QLabel* words_;
};

}  // namespace spillway::gui
