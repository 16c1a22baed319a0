// The frame that all views over time share: names at the left, the time axis on top, the plot in the rest. Besides the
// data it shows ticks, steps, the selected range and the cursor.
#pragma once

#include <QImage>
#include <QPainter>
#include <QRect>
#include <QString>
#include <optional>
#include <vector>

#include "gui/canvas/theme.h"
#include "gui/canvas/time_axis.h"

namespace spillway::gui {

struct PlotFrame {
  QSize size;        // of the whole, logical pixels
  double ratio = 1;  // device pixels per logical one
  int gutter = 168, axis = 24;

  [[nodiscard]] QRect plot() const {
    return {gutter, axis, std::max(1, size.width() - gutter), std::max(1, size.height() - axis)};
  }
  [[nodiscard]] int device(double logical) const { return static_cast<int>(logical * ratio + 0.5); }
  // The plot's axis, in device pixels.
  [[nodiscard]] TimeAxis device_axis(TimeRange view) const {
    return {view, static_cast<double>(std::max(1, device(size.width()) - device(gutter)))};
  }
  [[nodiscard]] TimeAxis axis_of(TimeRange view) const { return {view, static_cast<double>(plot().width())}; }
};

struct RowRange {
  int top = 0, bottom = 0;
};

struct PlotMarks {
  std::optional<TimeRange> selection;
  std::optional<RowRange> rows;  // of the selection, logical pixels; none: all
  std::optional<std::int64_t> cursor;
  bool timed = true;
  bool stale = false;  // dimmed: newer figures are being worked out
};

// An image of the frame's size, filled with the background.
QImage blank(const PlotFrame& frame, const Theme& theme);
// Fills [left, right) x [top, bottom), device pixels, cut to the image. 32-bit images only.
void fill_rows(QImage& image, int left, int right, int top, int bottom, std::uint32_t color);

void paint_marks(QPainter& painter, const PlotFrame& frame, TimeRange view, const Theme& theme, const PlotMarks& marks);
// `text` in `rect`, cut with an ellipsis where it doesn't fit.
void paint_elided(QPainter& painter, const QRectF& rect, int flags, const QString& text);

}  // namespace spillway::gui
