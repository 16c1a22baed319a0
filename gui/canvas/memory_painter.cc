#include "gui/canvas/memory_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/axis.h"
#include "base/number_text.h"

namespace spillway::gui {
namespace {

void paint_byte_axis(QPainter& painter, const PlotFrame& frame, std::int64_t top, const Theme& theme) {
  const QRect plot = frame.plot();
  painter.fillRect(QRect(0, plot.top(), frame.gutter - 1, plot.height()), theme.panel);
  for (const Tick& tick : byte_ticks(Bytes(top), 5)) {
    const double y = plot.bottom() - static_cast<double>(tick.at) / static_cast<double>(top) * plot.height();
    painter.setPen(theme.grid);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme.muted);
    const double text_top = std::clamp(y - 9, static_cast<double>(plot.top()), static_cast<double>(plot.bottom() - 18));
    painter.drawText(QRectF(4, text_top, frame.gutter - 12, 18), Qt::AlignRight | Qt::AlignVCenter,
                     QString::fromStdString(tick.label));
  }
}

std::int64_t curve_top(const MemoryScene& scene, const MemoryScene* baseline) {
  std::int64_t top = std::max(scene.reserved.peak(), scene.allocated.peak());
  if (baseline != nullptr) top = std::max({top, baseline->reserved.peak(), baseline->allocated.peak()});
  top = std::max(top, scene.picture.capacity.count());
  return std::max<std::int64_t>(1, top + top / 7);  // the legend is above the curves
}

struct CurvePlot {
  QImage& image;
  const PlotFrame& frame;
  TimeAxis axis;
  std::int64_t top;

  [[nodiscard]] int y(std::int64_t value) const {
    const int height = frame.device(frame.plot().height());
    return frame.device(frame.axis) + height -
           static_cast<int>(static_cast<double>(value) / static_cast<double>(top) * height + 0.5);
  }
  // A line thick enough to see, joined across columns; with a body down to zero where `body` is given.
  void draw(const StepCurve& curve, QRgb line, std::optional<QRgb> body, int thickness) const {
    const auto columns = curve.fold(axis);
    const int left = frame.device(frame.gutter), bottom = y(0);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const int x = left + static_cast<int>(i);
      const int high = y(columns[i].high), low = y(columns[i].low);
      if (body) fill_rows(image, x, x + 1, high, bottom, *body);
      fill_rows(image, x, x + 1, high, std::max(low, high) + thickness, line);
    }
  }
};

void paint_peak(QPainter& painter, const PlotFrame& frame, TimeRange view, const MemoryScene& scene, std::int64_t top,
                const Theme& theme) {
  const QRect plot = frame.plot();
  const std::int64_t at = scene.allocated.time_of_peak();
  if (at < view.begin || at >= view.end) return;
  const double x = plot.left() + frame.axis_of(view).x(at);
  const double y =
      plot.bottom() - static_cast<double>(scene.allocated.peak()) / static_cast<double>(top) * plot.height();
  painter.setPen(QPen(theme.text, 1));
  painter.setBrush(theme.allocated);
  painter.drawEllipse(QPointF(x, y), 4, 4);
  const QString text = QString("peak allocated %1 at %2")
                           .arg(QString::fromStdString(bytes_text(Bytes(scene.allocated.peak()))),
                                QString::fromStdString(time_text(at, scene.picture.timed)));
  const double width = painter.fontMetrics().horizontalAdvance(text) + 12;
  const double left = std::clamp(x - width / 2, plot.left() + 4.0, std::max(plot.left() + 4.0, plot.right() - width));
  const QRectF box(left, std::min(y + 10, plot.bottom() - 26.0), width, 20);
  QColor back = theme.panel;
  back.setAlpha(225);
  painter.fillRect(box, back);
  painter.drawText(box, Qt::AlignCenter, text);
}

void paint_level(QPainter& painter, const PlotFrame& frame, std::int64_t value, std::int64_t top, const QColor& color,
                 const QString& text) {
  const QRect plot = frame.plot();
  const double y = plot.bottom() - static_cast<double>(value) / static_cast<double>(top) * plot.height();
  painter.setPen(QPen(color, 2, Qt::DashLine));
  painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
  painter.drawText(QRectF(plot.left() + 8, y - 20 < plot.top() ? y + 2 : y - 20, plot.width() - 16.0, 18),
                   Qt::AlignRight | Qt::AlignVCenter, text);
}

}  // namespace

std::shared_ptr<const MemoryScene> memory_scene(MemoryPicture picture) {
  auto scene = std::make_shared<MemoryScene>();
  scene->allocated.reserve(picture.curve.size());
  scene->reserved.reserve(picture.curve.size());
  for (const MemoryPicture::Point& point : picture.curve) {
    scene->allocated.add(point.at, point.allocated.count());
    scene->reserved.add(point.at, point.reserved.count());
  }
  scene->map = AddressMap(picture);
  scene->whole = {picture.begin, std::max(picture.end, picture.begin + 1)};
  scene->picture = std::move(picture);
  return scene;
}

TimeRange map_bytes(const MemoryScene& scene) {
  return {0, std::max<std::int64_t>(1, scene.map.height() + scene.map.height() / 50)};
}

QImage paint_memory_curve(const MemoryScene& scene, const MemoryScene* baseline, const MemoryLook& look,
                          const Theme& theme) {
  QImage image = blank(look.frame, theme);
  const std::int64_t top = curve_top(scene, baseline);
  {
    QPainter painter(&image);
    paint_time_axis(painter, look.frame, look.view, theme, scene.picture.timed);
    paint_byte_axis(painter, look.frame, top, theme);
  }
  const CurvePlot plot{image, look.frame, look.frame.device_axis(look.view), top};
  const int thick = std::max(1, look.frame.device(1.5));
  plot.draw(scene.reserved, theme.reserved.rgb(), std::nullopt, thick);
  plot.draw(scene.allocated, theme.allocated.rgb(), theme.ghost(theme.allocated).rgb(), thick);
  if (baseline != nullptr) {
    plot.draw(baseline->reserved, theme.ghost(theme.reserved).rgb(), std::nullopt, thick);
    plot.draw(baseline->allocated, theme.muted.rgb(), std::nullopt, thick);
  }
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  if (scene.picture.capacity > Bytes(0))
    paint_level(painter, look.frame, scene.picture.capacity.count(), top, theme.capacity,
                QString("capacity %1").arg(QString::fromStdString(bytes_text(scene.picture.capacity))));
  paint_peak(painter, look.frame, look.view, scene, top, theme);
  std::vector<LegendEntry> legend = {{theme.allocated, "allocated"}, {theme.reserved, "reserved"}};
  if (baseline != nullptr) legend.push_back({theme.muted, "baseline allocated"});
  if (baseline != nullptr) legend.push_back({theme.ghost(theme.reserved), "baseline reserved"});
  paint_legend(painter, look.frame, legend, theme, look.frame.axis + 8);
  paint_marks(painter, look.frame, look.view, theme, look.marks);
  return image;
}

QImage paint_address_map(const MemoryScene& scene, const MemoryScene* baseline, const MemoryLook& look,
                         const Theme& theme) {
  QImage image = blank(look.frame, theme);
  TimeRange bytes = map_bytes(scene);
  if (baseline != nullptr) bytes.end = std::max(bytes.end, map_bytes(*baseline).end);
  {
    QPainter painter(&image);
    paint_time_axis(painter, look.frame, look.view, theme, scene.picture.timed);
    paint_byte_axis(painter, look.frame, bytes.length(), theme);
  }
  const int left = look.frame.device(look.frame.gutter), top = look.frame.device(look.frame.axis);
  const int pitch = static_cast<int>(image.bytesPerLine() / 4);
  const AddressMap::Raster raster{
      reinterpret_cast<std::uint32_t*>(image.bits()) + static_cast<std::ptrdiff_t>(top) * pitch + left,
      image.width() - left, image.height() - top, pitch};
  if (baseline != nullptr) baseline->map.draw(raster, look.view, bytes, {theme.grid.rgb()});
  std::vector<std::uint32_t> colors;
  for (const std::string& kind : scene.picture.kinds) colors.push_back(theme.owner(kind).rgb());
  scene.map.draw(raster, look.view, bytes, colors);
  QPainter painter(&image);
  const QRect plot = look.frame.plot();
  const auto y_of = [&](std::int64_t at) {
    return plot.bottom() - static_cast<double>(at) / static_cast<double>(bytes.length()) * plot.height();
  };
  painter.setPen(QPen(theme.text, 1, Qt::DotLine));
  for (const std::int64_t seam : scene.map.seams())
    painter.drawLine(QPointF(plot.left(), y_of(seam)), QPointF(plot.right(), y_of(seam)));
  if (look.chosen && *look.chosen < scene.map.blocks().size()) {
    const AddressMap::Block& block = scene.map.blocks()[*look.chosen];
    const TimeAxis axis = look.frame.axis_of(look.view);
    painter.setPen(QPen(theme.text, 2));
    painter.drawRect(QRectF(QPointF(plot.left() + axis.x(block.begin), y_of(block.high)),
                            QPointF(plot.left() + axis.x(block.end), y_of(block.low))));
  }
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < scene.picture.kinds.size(); ++i)
    legend.push_back(
        {theme.owner(scene.picture.kinds[i]), QString::fromStdString(scene.picture.kinds[i]).replace('_', ' ')});
  if (baseline != nullptr) legend.push_back({theme.grid, "baseline"});
  paint_legend(painter, look.frame, legend, theme, look.frame.axis + 8);
  paint_marks(painter, look.frame, look.view, theme, look.marks);
  return image;
}

}  // namespace spillway::gui
