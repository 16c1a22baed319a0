// The strip on top: the answers, large, each with its change against the baseline.
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/workspace/shown_figures.h"

class QLabel;

namespace spillway::gui {

class VerdictStrip : public QWidget {
 public:
  VerdictStrip();
  void show(const std::vector<ShownFigure>& figures);
  void set_theme(const Theme& theme);
  void set_stale(bool stale);
  [[nodiscard]] const std::vector<ShownFigure>& shown() const { return figures_; }
  // The provenance of the figure under the pointer or in focus; empty: none.
  std::function<void(const QString&)> on_hover;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Cell {
    QFrame* frame = nullptr;
    QLabel *title = nullptr, *value = nullptr, *detail = nullptr, *change = nullptr;
  };
  void paint_cells();

  std::vector<Cell> cells_;
  std::vector<ShownFigure> figures_;
  const Theme* theme_;
  bool stale_ = false;
};

}  // namespace spillway::gui
