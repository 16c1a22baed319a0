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

void paint_legend(QPainter& painter, const PlotFrame& frame, const std::vector<LegendEntry>& entries,
                  const Theme& theme, double top) {
  double x = frame.gutter + 10;
  const double y = top;
  for (const LegendEntry& entry : entries) {
    const double width = painter.fontMetrics().horizontalAdvance(entry.words) + 30;
    if (x + width > frame.size.width()) break;
    QColor back = theme.panel;
    back.setAlpha(215);
    painter.fillRect(QRectF(x - 4, y - 3, width, 20), back);
    painter.fillRect(QRectF(x, y + 1, 12, 12), entry.color);
    painter.setPen(theme.text);
    painter.drawText(QRectF(x + 17, y - 2, width, 18), Qt::AlignVCenter | Qt::AlignLeft, entry.words);
    x += width + 6;
  }
}

void paint_elided(QPainter& painter, const QRectF& rect, int flags, const QString& text) {
  painter.drawText(rect, flags, painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(rect.width())));
}

void paint_time_axis(QPainter& painter, const PlotFrame& frame, TimeRange view, const Theme& theme, bool timed) {
  const QRect plot = frame.plot();
  const TimeAxis axis = frame.axis_of(view);
  painter.fillRect(QRect(0, 0, frame.size.width(), frame.axis), theme.panel);
  const int tick_room = painter.fontMetrics().horizontalAdvance("000.000 ms") + 24;
  const auto ticks = axis.ticks(std::max(1, plot.width() / tick_room), timed);
  for (const Tick& tick : ticks) {
    const double x = plot.left() + axis.x(tick.at);
    painter.setPen(theme.grid);
    painter.drawLine(QPointF(x, frame.axis - 5), QPointF(x, frame.size.height()));
    painter.setPen(theme.muted);
    const QString label = QString::fromStdString(tick.label);
    const double width = painter.fontMetrics().horizontalAdvance(label);
    const double left = std::min(x + 3, frame.size.width() - width - 2);
    painter.drawText(QRectF(left, 0, width + 2, frame.axis), Qt::AlignVCenter | Qt::AlignLeft, label);
  }
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
