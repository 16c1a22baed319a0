// A plot under the pointer and the keys: whatever it shows has a card with its name and figures, and can be chosen.
//
//   pointer, arrows   card of what is there, of the next       wheel, W S   zoom at the pointer, at the middle
//   click, Enter      choose it                                drag         pan
//   Home              everything                               Esc          no card
#pragma once

#include <QImage>
#include <QWidget>
#include <optional>

#include "gui/plots/plot_picture.h"
#include "gui/plots/table_model.h"

namespace spillway::gui {

class PlotView : public QWidget {
  Q_OBJECT

 public:
  // hint: last line of the card of what can be chosen, "Enter: ...".
  PlotView(const QString& name, const QString& about, const QString& hint);

  void set_theme(const Theme& theme);
  void set_stale(bool stale);
  [[nodiscard]] const PlotScene& scene() const { return scene_; }
  [[nodiscard]] std::optional<std::size_t> pointed() const { return pointed_; }
  // Position of an item, for the mouse.
  [[nodiscard]] QPoint place(std::size_t item) const;
  // The same figures as rows.
  [[nodiscard]] virtual TableRows table() const = 0;

 Q_SIGNALS:
  void chosen(qint64 id);

 protected:
  // Shows another scene; what is in sight and pointed at stays where the plot is of the same kind.
  void show_scene(PlotScene scene);

  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  [[nodiscard]] PlotGeometry geometry() const { return {scene_, QSizeF(size()), font(), window_}; }
  void point_at(std::optional<std::size_t> item);
  void step(int by);
  void choose(std::size_t item);
  void zoom(double factor, QPointF at);
  void redraw();

  const Theme* theme_;
  PlotScene scene_;
  QString hint_, about_;
  std::optional<PlotWindow> window_;
  std::optional<std::size_t> pointed_;
  std::optional<QPointF> pressed_;
  bool drags_ = false, stale_ = false, is_drawn_ = false;
  QImage image_;  // without mark and card
};

}  // namespace spillway::gui
