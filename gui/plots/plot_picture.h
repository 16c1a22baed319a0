// One plot as data, and where its parts lie: points, lines and bands over two axes, or bars over one. No widget.
//
//   the axes follow the data, linear up to a factor of 12 and logarithmic beyond; ticks are round (1, 2, 5)
//   bars lie below one another, the first at the top
#pragma once

#include <QPainter>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "base/axis.h"
#include "gui/canvas/theme.h"

namespace spillway::gui {

enum class PlotShape : std::uint8_t { disc, ring, diamond, square };

struct PlotSeries {
  QString name;
  Token token = Token::accent;
  PlotShape shape = PlotShape::disc;
  double size = 8;        // logical pixels
  bool is_ghost = false;  // of a baseline: half way to the background
};

struct PlotPoint {
  double x = 0, y = 0;  // finite
  std::size_t series = 0;
  qint64 id = -1;         // the caller's own; -1: can't be chosen
  QString name;           // head of its card
  QStringList facts;      // its card's lines
  bool is_named = false;  // its name beside it, where there is room
};

struct PlotLine {
  QString name;  // empty: not in the legend
  Token token = Token::muted;
  std::vector<QPointF> at;
  bool is_dashed = false, has_steps = false;  // steps: level first, then upright
};

// A level of y that means something, across the whole width.
struct PlotLevel {
  double y = 0;
  Token token = Token::bad;
  QString words;
};

struct PlotBar {
  QString name;
  double value = 0;
  std::optional<double> before;  // a baseline's
  QString words;                 // at its end
  QStringList facts;
  qint64 id = -1;
};

struct PlotScene {
  QString x_title, y_title;
  QString empty_words;  // why there is nothing to see
  std::vector<PlotSeries> series;
  std::vector<PlotPoint> points;
  std::vector<PlotLine> lines;
  std::vector<PlotLevel> levels;
  std::vector<PlotBar> bars;  // not empty: nothing else but x_title is drawn
  // At least this much of each axis is in sight.
  std::vector<QPointF> in_sight;
  [[nodiscard]] bool empty() const { return points.empty() && bars.empty(); }
  [[nodiscard]] std::size_t items() const { return bars.empty() ? points.size() : bars.size(); }
};

// The part of a scene in sight, if not all of it is. Values of the axes.
struct PlotWindow {
  double left = 0, right = 1, bottom = 0, top = 1;
};

class PlotGeometry {
 public:
  // `font` is what the plot is painted with. A window is cut to the data's axes.
  PlotGeometry(const PlotScene& scene, QSizeF size, const QFont& font, const std::optional<PlotWindow>& window = {});

  [[nodiscard]] QRectF plot() const { return plot_; }
  [[nodiscard]] const Axis& x() const { return x_; }
  [[nodiscard]] const Axis& y() const { return y_; }
  [[nodiscard]] QPointF at(QPointF value) const { return {x_.at(value.x()), y_.at(value.y())}; }
  [[nodiscard]] QRectF bar(std::size_t i) const;  // without the baseline's
  [[nodiscard]] QRectF row(std::size_t i) const;  // name and all
  // The point nearest to the pointer within reach, the last drawn of equals; or the bar with the pointer in its row.
  [[nodiscard]] std::optional<std::size_t> item_at(QPointF pointer) const;
  // Middle of an item.
  [[nodiscard]] QPointF place(std::size_t item) const;
  // The window in sight when the part (0 .. 1 of the plot's width and height, y downwards) is to fill the plot.
  [[nodiscard]] PlotWindow window_of(const QRectF& part) const;

 private:
  const PlotScene& scene_;
  QRectF plot_;
  Axis x_, y_;
};

// Names of points beside these: right, left, above or below; left out where all of that is taken by another name, a
// mark or a line. Indices of points, and pixels. O(named points x (points + lines' corners)).
struct PlacedName {
  std::size_t point = 0;
  QRectF box;
};
std::vector<PlacedName> placed_names(const PlotScene& scene, const PlotGeometry& geometry, const QFontMetrics& metrics);

// Axes, legend, data. The background is the caller's.
void paint_plot(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, const Theme& theme);
// Marks one item and shows its card inside `whole`.
void paint_card(QPainter& painter, const PlotScene& scene, const PlotGeometry& geometry, std::size_t item,
                const QRectF& whole, const Theme& theme, const QString& hint);

}  // namespace spillway::gui
