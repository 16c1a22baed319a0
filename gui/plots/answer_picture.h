// The memory of the answer's step over time, drawn: by owner, one GPU at a time, with what runs below it. The way
// pointed at is a dashed outline over it.
//
//   GiB |  activations    /\        - - -  the way's
//       |  ______________/  \______        ========== what the GPU has; hatched: kept free
//       |  weights
//        phases, stages, streams           on the same axis
#pragma once

#include <QPixmap>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "gui/canvas/theme.h"
#include "studies/answer/answer.h"

namespace spillway::gui {

class AnswerPicture : public QWidget {
 public:
  AnswerPicture();
  void set_theme(const Theme& theme);
  // Its fullest stage first. Null: none yet.
  void show(std::shared_ptr<const studies::Answer> answer);
  void choose_stage(int stage);
  [[nodiscard]] int stage() const { return stage_; }
  // Over it; outlines: of the way's stages, none: a level line at its peak. Null: no way.
  void preview(const studies::AnswerWay* way, const std::vector<studies::WayOutline>& outlines);
  [[nodiscard]] bool has_outline() const { return outline_ != nullptr; }
  void set_stale(bool stale);
  // The owners that are seen, in their colours.
  [[nodiscard]] std::vector<std::pair<QColor, QString>> legend() const;

  std::function<void(const QString&)> on_readout;  // what is under the pointer; empty: nothing
  std::function<void(int)> on_stage;               // clicked

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  [[nodiscard]] QSize sizeHint() const override { return {640, 420}; }

 private:
  struct Row;
  struct Place;
  [[nodiscard]] const studies::StageMemory* shown() const;
  [[nodiscard]] std::vector<Row> rows() const;
  [[nodiscard]] Place place() const;
  [[nodiscard]] QPixmap painted() const;
  void paint_stack(QPainter& painter, const Place& place) const;
  void paint_limits(QPainter& painter, const Place& place) const;
  void paint_way(QPainter& painter, const Place& place, QPointF& peak) const;
  void paint_labels(QPainter& painter, const Place& place, QPointF way_peak) const;
  void paint_rows(QPainter& painter, const Place& place) const;
  void paint_axes(QPainter& painter, const Place& place) const;
  void point_at(std::optional<double> x);
  [[nodiscard]] QString readout(double x) const;
  [[nodiscard]] QColor color_of(std::size_t owner) const;
  void changed();

  std::shared_ptr<const studies::Answer> answer_;
  int stage_ = 0;
  std::unique_ptr<const studies::WayOutline> outline_;
  QString way_words_;  // empty: no way
  std::int64_t way_level_ = 0;
  std::optional<double> cursor_;
  bool stale_ = false;
  const Theme* theme_;
  mutable QPixmap kept_;  // null: to be painted again
};

}  // namespace spillway::gui
