#include "gui/plots/plot_picture.h"

#include <QLineF>
#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "gui/canvas/plot_frame.h"

namespace spillway::gui {
namespace {

constexpr double reach = 14;        // of the pointer
constexpr double legend_room = 26;  // above the plot
constexpr double axis_room = 42;    // below it: labels and title
constexpr double end_room = 16;     // right of it
constexpr double tallest_bar = 34;
constexpr double bar_words_room = 96;  // right of the longest bar
constexpr int x_ticks = 8, y_ticks = 6;

QString tick_text(double value) { return QString::fromStdString(number_text(value)); }

// The middle of a logarithmic axis is the geometric mean of its ends.
bool is_logarithmic(const Axis& axis) {
  if (!(axis.low() > 0)) return false;
  const double middle = axis.at(std::sqrt(axis.low() * axis.high()));
  return std::abs(middle - (axis.from() + axis.to()) / 2) < 1e-6 * std::abs(axis.to() - axis.from());
}

double value_at(const Axis& axis, double pixel) {
  const double part = (pixel - axis.from()) / (axis.to() - axis.from());
  if (is_logarithmic(axis)) return axis.low() * std::pow(axis.high() / axis.low(), part);
  return axis.low() + part * (axis.high() - axis.low());
}

struct Extent {
  double low = 1, high = 2;
  bool any = false;
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
};

Extent extent(const PlotScene& scene, bool of_x) {
  Extent found;
  const auto take = [&](QPointF at) { found.take(of_x ? at.x() : at.y()); };
  for (const PlotPoint& point : scene.points) take({point.x, point.y});
  for (const PlotLine& line : scene.lines)
    for (const QPointF& at : line.at) take(at);
  for (const QPointF& at : scene.in_sight) take(at);
  if (!of_x)
    for (const PlotLevel& level : scene.levels) found.take(level.y);
  if (of_x)
    for (const PlotBar& bar : scene.bars) {
      found.take(bar.value);
      if (bar.before) found.take(*bar.before);
    }
  return found;
}

Axis axis_of(const Extent& extent, double from, double to, std::optional<std::pair<double, double>> cut) {
  const Axis whole = Axis::around(extent.low, extent.high, from, to);
  if (!cut) return whole;
  const double low = std::max(cut->first, whole.low()), high = std::min(cut->second, whole.high());
  if (!(low < high)) return whole;
  // A short stretch of a logarithmic axis would have no tick.
  const bool stays = low > 0 && high / low > 3 && is_logarithmic(whole);
  return {low, high, from, to, stays ? Axis::Kind::logarithmic : Axis::Kind::linear};
}

double longest(const QFontMetricsF& metrics, const std::vector<double>& ticks) {
  double width = 0;
  for (const double tick : ticks) width = std::max(width, metrics.horizontalAdvance(tick_text(tick)));
  return width;
}

QRectF plot_of(const PlotScene& scene, QSizeF size, const QFont& font) {
  const QFontMetricsF metrics(font);
  double left = 0;
  if (scene.bars.empty()) {
    const Extent values = extent(scene, false);
    left = longest(metrics, axis_of(values, 0, 100, std::nullopt).ticks(y_ticks)) + metrics.height() + 22;
  } else {
    for (const PlotBar& bar : scene.bars) left = std::max(left, metrics.horizontalAdvance(bar.name));
    constexpr double hinted = 1.12;  // an image's letters stand on whole pixels: wider than the metrics say
    left = std::min(left * hinted + 28, size.width() * 0.4);
  }
  const double right = end_room + (scene.bars.empty() ? 0 : bar_words_room);
  return {left, legend_room, std::max(20.0, size.width() - left - right),
          std::max(20.0, size.height() - legend_room - axis_room)};
}

double row_height(const PlotScene& scene, const QRectF& plot) {
  return std::min(tallest_bar * 1.5, plot.height() / static_cast<double>(std::max<std::size_t>(1, scene.bars.size())));
}

void draw_shape(QPainter& painter, PlotShape shape, QPointF at, double size, const QColor& color) {
  const double half = size / 2;
  QPen edge(color.darker(130), 1);
  painter.setBrush(shape == PlotShape::ring ? QBrush(Qt::NoBrush) : QBrush(color));
  if (shape == PlotShape::ring) edge = QPen(color, 1.4);
  painter.setPen(edge);
  switch (shape) {
    case PlotShape::disc:
    case PlotShape::ring:
      painter.drawEllipse(at, half, half);
      return;
    case PlotShape::square:
      painter.drawRect(QRectF(at.x() - half, at.y() - half, size, size));
      return;
    case PlotShape::diamond:
      painter.drawPolygon(QPolygonF({at + QPointF(0, -half - 1), at + QPointF(half + 1, 0), at + QPointF(0, half + 1),
                                     at + QPointF(-half - 1, 0)}));
      return;
  }
}

QColor color_of(const PlotSeries& series, const Theme& theme) {
  return series.is_ghost ? theme.ghost(theme[series.token]) : theme[series.token];
}

void paint_axes(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  const QRectF plot = geometry.plot();
  const QFontMetricsF metrics = painter.fontMetrics();
  const auto below = [&](double top) { return QRectF(plot.left(), plot.bottom() + top, plot.width(), 18); };
  double free_from = -1e9;
  for (const double tick : geometry.x().ticks(x_ticks)) {
    const double x = std::round(geometry.x().at(tick)) + 0.5;
    painter.setPen(theme.grid);
    painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()));
    const double width = metrics.horizontalAdvance(tick_text(tick));
    if (x - width / 2 < free_from) continue;
    free_from = x + width / 2 + 10;
    painter.setPen(theme.muted);
    painter.drawText(QRectF(x - 60, plot.bottom() + 3, 120, 18), Qt::AlignHCenter | Qt::AlignTop, tick_text(tick));
  }
  painter.setPen(theme.text);
  paint_elided(painter, below(21), Qt::AlignHCenter | Qt::AlignTop, scene.x_title);
  painter.setPen(theme.muted);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  if (!scene.bars.empty()) return;
  for (const double tick : geometry.y().ticks(y_ticks)) {
    const double y = std::round(geometry.y().at(tick)) + 0.5;
    painter.setPen(theme.grid);
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    painter.setPen(theme.muted);
    painter.drawText(QRectF(0, y - 10, plot.left() - 6, 20), Qt::AlignRight | Qt::AlignVCenter, tick_text(tick));
  }
  painter.setPen(theme.muted);
  painter.drawLine(plot.topLeft(), plot.bottomLeft());
  painter.save();
  painter.setPen(theme.text);
  painter.translate(2, plot.center().y());
  painter.rotate(-90);
  paint_elided(painter, QRectF(-plot.height() / 2, 0, plot.height(), metrics.height() + 2), Qt::AlignCenter,
               scene.y_title);
  painter.restore();
}

void paint_legend_row(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  double x = geometry.plot().left();
  const double y = legend_room / 2;
  const auto words = [&](const QString& text) {
    const double width = painter.fontMetrics().horizontalAdvance(text);
    painter.setPen(theme.text);
    painter.drawText(QRectF(x + 16, 0, width + 4, legend_room), Qt::AlignVCenter | Qt::AlignLeft, text);
    x += width + 36;
  };
  const auto has_room = [&](const QString& text) {
    return x + 16 + painter.fontMetrics().horizontalAdvance(text) <= geometry.plot().right();
  };
  for (std::size_t i = 0; i < scene.series.size(); ++i) {
    const PlotSeries& series = scene.series[i];
    const bool is_used = std::any_of(scene.points.begin(), scene.points.end(),
                                     [i](const PlotPoint& point) { return point.series == i; });
    if (series.name.isEmpty() || (!is_used && scene.bars.empty()) || !has_room(series.name)) continue;
    draw_shape(painter, series.shape, {x + 6, y}, std::min(series.size, 11.0), color_of(series, theme));
    words(series.name);
  }
  for (const PlotLine& line : scene.lines) {
    if (line.name.isEmpty() || !has_room(line.name)) continue;
    painter.setPen(QPen(theme[line.token], 2, line.is_dashed ? Qt::DashLine : Qt::SolidLine));
    painter.drawLine(QPointF(x, y), QPointF(x + 12, y));
    words(line.name);
  }
}

// A line's corners, in pixels.
std::vector<QPointF> corners_of(const PlotLine& line, const PlotGeometry& geometry) {
  std::vector<QPointF> corners;
  for (const QPointF at : line.at) {
    const QPointF to = geometry.at(at);
    if (line.has_steps && !corners.empty()) corners.emplace_back(to.x(), corners.back().y());
    corners.push_back(to);
  }
  return corners;
}

bool is_crossed(const QRectF& box, const std::vector<QPointF>& corners) {
  for (std::size_t i = 1; i < corners.size(); ++i) {
    const QLineF line(corners[i - 1], corners[i]);
    if (box.contains(line.p1()) || box.contains(line.p2())) return true;
    for (const QLineF& side : {QLineF(box.topLeft(), box.bottomRight()), QLineF(box.topRight(), box.bottomLeft())})
      if (line.intersects(side, nullptr) == QLineF::BoundedIntersection) return true;
  }
  return false;
}

void paint_lines(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  for (const PlotLevel& level : scene.levels) {
    const double y = geometry.y().at(level.y);
    painter.setPen(QPen(theme[level.token], 1.5));
    painter.drawLine(QPointF(geometry.plot().left(), y), QPointF(geometry.plot().right(), y));
    painter.drawText(QRectF(geometry.plot().left() + 6, y - 19, geometry.plot().width() - 12, 18),
                     Qt::AlignLeft | Qt::AlignBottom, level.words);
  }
  painter.setBrush(Qt::NoBrush);
  for (const PlotLine& line : scene.lines) {
    const std::vector<QPointF> corners = corners_of(line, geometry);
    painter.setPen(QPen(theme[line.token], 1.8, line.is_dashed ? Qt::DashLine : Qt::SolidLine));
    painter.drawPolyline(corners.data(), static_cast<int>(corners.size()));
  }
}

void paint_names(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  painter.setPen(theme.text);
  for (const PlacedName& name : placed_names(scene, geometry, painter.fontMetrics()))
    painter.drawText(name.box, Qt::AlignCenter, scene.points[name.point].name);
}

void paint_bars(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  const QColor& color = theme.accent;
  for (std::size_t i = 0; i < scene.bars.size(); ++i) {
    const PlotBar& bar = scene.bars[i];
    const QRectF box = geometry.bar(i), row = geometry.row(i);
    painter.setPen(theme.text);
    paint_elided(painter, QRectF(4, row.top(), geometry.plot().left() - 14, row.height()),
                 Qt::AlignRight | Qt::AlignVCenter, bar.name);
    painter.fillRect(box, color);
    double end = box.right();
    if (bar.before) {  // a mark where the baseline's would end
      const double x = geometry.x().at(*bar.before);
      painter.fillRect(QRectF(x - 1.5, box.top() - 3, 3, box.height() + 6), theme.text);
      end = std::max(end, x + 2);
    }
    painter.setPen(theme.text);
    painter.drawText(QRectF(end + 6, row.top(), 400, row.height()), Qt::AlignLeft | Qt::AlignVCenter, bar.words);
  }
}

}  // namespace

PlotGeometry::PlotGeometry(const PlotScene& scene, QSizeF size, const QFont& font,
                           const std::optional<PlotWindow>& window)
    : scene_(scene),
      plot_(plot_of(scene, size, font)),
      x_(scene.bars.empty()
             ? axis_of(extent(scene, true), plot_.left(), plot_.right(),
                       window ? std::optional(std::pair(window->left, window->right)) : std::nullopt)
             : Axis::from_zero(std::max(extent(scene, true).high, 1e-9), plot_.left(), plot_.right(), x_ticks)),
      y_(axis_of(extent(scene, false), plot_.bottom(), plot_.top(),
                 window ? std::optional(std::pair(window->bottom, window->top)) : std::nullopt)) {}

QRectF PlotGeometry::row(std::size_t i) const {
  const double height = row_height(scene_, plot_);
  return {0, plot_.top() + height * static_cast<double>(i), plot_.right() + end_room, height};
}

QRectF PlotGeometry::bar(std::size_t i) const {
  const QRectF whole = row(i);
  const double height = whole.height() * 0.6;
  const double end = x_.at(std::max(0.0, scene_.bars[i].value));
  return {plot_.left(), whole.center().y() - height / 2, std::max(1.0, end - plot_.left()), height};
}

std::optional<std::size_t> PlotGeometry::item_at(QPointF pointer) const {
  for (std::size_t i = 0; i < scene_.bars.size(); ++i)
    if (row(i).contains(pointer)) return i;
  std::optional<std::size_t> found;
  double best = reach * reach;
  for (std::size_t i = 0; i < scene_.points.size(); ++i) {
    const QPointF away = at({scene_.points[i].x, scene_.points[i].y}) - pointer;
    const double distance = QPointF::dotProduct(away, away);
    if (distance > best) continue;
    best = distance;
    found = i;
  }
  return found;
}

QPointF PlotGeometry::place(std::size_t item) const {
  if (scene_.bars.empty()) return at({scene_.points[item].x, scene_.points[item].y});
  const QRectF box = bar(item);
  return {box.right(), box.center().y()};
}

PlotWindow PlotGeometry::window_of(const QRectF& part) const {
  const QRectF pixels(plot_.left() + part.left() * plot_.width(), plot_.top() + part.top() * plot_.height(),
                      part.width() * plot_.width(), part.height() * plot_.height());
  return {value_at(x_, pixels.left()), value_at(x_, pixels.right()), value_at(y_, pixels.bottom()),
          value_at(y_, pixels.top())};
}

std::vector<PlacedName> placed_names(const PlotScene& scene, const PlotGeometry& geometry,
                                     const QFontMetrics& metrics) {
  constexpr std::size_t most_names = 24;
  std::vector<PlacedName> placed;
  std::vector<QRectF> taken;
  for (const PlotPoint& point : scene.points) {
    const double side = scene.series[point.series].size;
    taken.emplace_back(geometry.at({point.x, point.y}) - QPointF(side, side) / 2, QSizeF(side, side));
  }
  std::vector<std::vector<QPointF>> lines;
  for (const PlotLine& line : scene.lines) lines.push_back(corners_of(line, geometry));
  const auto is_free = [&](const QRectF& box) {
    return geometry.plot().contains(box) &&
           std::none_of(lines.begin(), lines.end(), [&](const auto& line) { return is_crossed(box, line); }) &&
           std::none_of(taken.begin(), taken.end(), [&](const QRectF& other) { return other.intersects(box); });
  };
  for (std::size_t i = 0; i < scene.points.size() && placed.size() < most_names; ++i) {
    const PlotPoint& point = scene.points[i];
    const QPointF at = geometry.at({point.x, point.y});
    if (!point.is_named || !geometry.plot().contains(at)) continue;
    const double far = scene.series[point.series].size / 2 + 4, height = metrics.height();
    const double width = metrics.horizontalAdvance(point.name) + 2;
    for (const QRectF& box : {QRectF(at.x() + far, at.y() - height / 2, width, height),
                              QRectF(at.x() - far - width, at.y() - height / 2, width, height),
                              QRectF(at.x() - width / 2, at.y() - far - height, width, height),
                              QRectF(at.x() - width / 2, at.y() + far, width, height)}) {
      if (!is_free(box)) continue;
      placed.push_back({i, box});
      taken.push_back(box);
      break;
    }
  }
  return placed;
}

void paint_plot(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme) {
  if (scene.empty()) return;
  painter.setRenderHint(QPainter::Antialiasing);
  paint_axes(painter, scene, geometry, theme);
  paint_legend_row(painter, scene, geometry, theme);
  if (!scene.bars.empty()) return paint_bars(painter, scene, geometry, theme);
  painter.save();
  painter.setClipRect(geometry.plot().adjusted(-6, -6, 6, 6));
  paint_lines(painter, scene, geometry, theme);
  for (const PlotPoint& point : scene.points) {
    const PlotSeries& series = scene.series[point.series];
    draw_shape(painter, series.shape, geometry.at({point.x, point.y}), series.size, color_of(series, theme));
  }
  paint_names(painter, scene, geometry, theme);
  painter.restore();
}

void paint_card(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, std::size_t item,
                const QRectF& whole, const Theme& theme, const QString& hint) {
  constexpr double edge = 10, away = 14;
  const bool is_bar = !scene.bars.empty();
  const QString& name = is_bar ? scene.bars[item].name : scene.points[item].name;
  QStringList lines = is_bar ? scene.bars[item].facts : scene.points[item].facts;
  if (!hint.isEmpty()) lines << hint;
  QFont bold = painter.font();
  bold.setBold(true);
  const QFontMetricsF heads(bold), metrics = painter.fontMetrics();
  double width = heads.horizontalAdvance(name);
  for (const QString& line : lines) width = std::max(width, metrics.horizontalAdvance(line));
  width = std::min(width + 2 * edge, whole.width() - 8);
  const double line_height = metrics.height() + 2;
  const double height = line_height * static_cast<double>(lines.size() + 1) + 2 * edge - 4;
  const QPointF at = geometry.place(item);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  for (const auto& [color, pen] : {std::pair(theme.background, 4.5), std::pair(theme.accent, 2.2)}) {
    painter.setPen(QPen(color, pen));
    if (is_bar)
      painter.drawRect(geometry.bar(item).adjusted(-2, -2, 2, 2));
    else
      painter.drawEllipse(at, scene.series[scene.points[item].series].size / 2 + 3,
                          scene.series[scene.points[item].series].size / 2 + 3);
  }
  QRectF box(at.x() + away, at.y() + away, width, height);
  if (box.right() > whole.right() - 4) box.moveRight(at.x() - away);
  if (box.left() < whole.left() + 4) box.moveLeft(whole.left() + 4);
  if (box.bottom() > whole.bottom() - 4) box.moveBottom(at.y() - away);
  if (box.top() < whole.top() + 4) box.moveTop(whole.top() + 4);
  painter.setPen(QPen(theme[Token::control], 1));
  painter.setBrush(theme[Token::raised]);
  painter.drawRoundedRect(box, 6, 6);
  QRectF line(box.left() + edge, box.top() + edge - 2, box.width() - 2 * edge, line_height);
  painter.setPen(theme.text);
  painter.save();
  painter.setFont(bold);
  paint_elided(painter, line, Qt::AlignLeft | Qt::AlignVCenter, name);
  painter.restore();
  for (const QString& text : lines) {
    line.translate(0, line_height);
    painter.setPen(text == hint ? theme.muted : theme.text);
    paint_elided(painter, line, Qt::AlignLeft | Qt::AlignVCenter, text);
  }
}

}  // namespace spillway::gui
