#include "gui/canvas/plot_frame.h"

#include <algorithm>

#include "gui/canvas/pixel_run.h"

namespace spillway::gui {

QImage blank(const PlotFrame& frame, const Theme& theme) {
  QImage image(std::max(1, frame.device(frame.size.width())), std::max(1, frame.device(frame.size.height())),
               QImage::Format_RGB32);
  image.setDevicePixelRatio(frame.ratio);
  image.fill(theme.background);
  return image;
}

void fill_rows(QImage& image, int left, int right, int top, int bottom, std::uint32_t color) {
  left = std::max(left, 0);
  right = std::min(right, image.width());
  bottom = std::min(bottom, image.height());
  if (left >= right) return;
  for (int y = std::max(top, 0); y < bottom; ++y) {
    auto* const row = reinterpret_cast<std::uint32_t*>(image.scanLine(y));
    fill_run(row + left, row + right, color);
  }
}

void paint_elided(QPainter& painter, const QRectF& rect, int flags, const QString& text) {
  painter.drawText(rect, flags, painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(rect.width())));
}

void paint_marks(QPainter& painter, const PlotFrame& frame, TimeRange view, const Theme& theme,
                 const PlotMarks& marks) {
  const QRect plot = frame.plot();
  const TimeAxis axis = frame.axis_of(view);
  if (marks.selection) {
    const double left = plot.left() + std::clamp(axis.x(marks.selection->begin), 0.0, axis.width());
    const double right = plot.left() + std::clamp(axis.x(marks.selection->end), 0.0, axis.width());
    QColor shade = theme.accent;
    shade.setAlpha(46);
    const int top = marks.rows ? std::max(plot.top(), marks.rows->top) : plot.top();
    const int bottom = marks.rows ? std::min(plot.bottom(), marks.rows->bottom) : plot.bottom();
    if (top < bottom) {
      painter.fillRect(QRectF(left, top, right - left, bottom - top), shade);
      painter.setPen(theme.accent);
      painter.drawLine(QPointF(left, top), QPointF(left, bottom));
      painter.drawLine(QPointF(right, top), QPointF(right, bottom));
    }
  }
  if (marks.cursor && *marks.cursor >= view.begin && *marks.cursor < view.end) {
    const double x = plot.left() + axis.x(*marks.cursor);
    painter.setPen(QPen(theme.muted, 1, Qt::DashLine));
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
  }
  if (marks.stale) {
    QColor veil = theme.background;
    veil.setAlpha(130);
    painter.fillRect(QRect(0, 0, frame.size.width(), frame.size.height()), veil);
  }
}

}  // namespace spillway::gui
