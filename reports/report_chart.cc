#include "reports/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"

namespace spillway::reports {
namespace {

constexpr std::string_view ink = svg_ink, faint = svg_faint, grid = svg_grid;
constexpr double left = 58, right = 14, top = 30, plot_height = 160, axis_room = 40, legend_line = 15, text_size = 10;

struct Range {
  double x = 0, y = 0;
};

Range range_of(const ReportChart& chart) {
  Range range;
  for (const ReportSeries& series : chart.series) {
    for (const double x : series.x) range.x = std::max(range.x, x);
    for (const double y : series.y) range.y = std::max(range.y, y);
  }
  if (range.x <= 0) range.x = 1;
  range.y = range.y <= 0 ? 1 : range.y * 1.06;
  return range;
}

class Drawer {
 public:
  Drawer(const ReportChart& chart, double width)
      : chart_(chart),
        range_(range_of(chart)),
        plot_width_(width - left - right),
        x_(0, range_.x, left, left + plot_width_),
        y_(0, range_.y, top + plot_height, top) {
    drawing_.width = width;
  }

  ChartDrawing draw() {
    text(0, 14, 12, ChartAnchor::start, fit_text(chart_.title, 12, drawing_.width), ink);
    axes();
    std::size_t colour = 0;
    for (const ReportSeries& series : chart_.series)
      if (!series.x.empty()) add(series, std::string(svg_colours[colour++ % svg_colours.size()]));
    drawing_.height = legend_ + 6;
    return std::move(drawing_);
  }

 private:
  [[nodiscard]] double at_x(double x) const { return x_.at(x); }
  [[nodiscard]] double at_y(double y) const { return y_.at(y); }

  void text(double x, double y, double size, ChartAnchor anchor, std::string words, std::string_view colour) {
    drawing_.texts.push_back({x, y, size, anchor, std::move(words), std::string(colour)});
  }
  void line(std::vector<double> x, std::vector<double> y, std::string_view colour, double width, bool dashed = false) {
    drawing_.lines.push_back({std::move(x), std::move(y), std::string(colour), width, dashed});
  }

  void axes() {
    for (const double y : y_.ticks(5)) {
      line({left, left + plot_width_}, {at_y(y), at_y(y)}, grid, y == 0 ? 0 : 0.7);
      text(left - 6, at_y(y) + 3.5, text_size, ChartAnchor::end, number_text(y), faint);
    }
    for (const double x : x_.ticks(5)) {
      line({at_x(x), at_x(x)}, {at_y(0), at_y(0) + 4}, faint, 0.7);
      text(at_x(x), at_y(0) + 15, text_size, x > 0.97 * range_.x ? ChartAnchor::end : ChartAnchor::middle,
           number_text(x), faint);
    }
    line({left, left + plot_width_}, {at_y(0), at_y(0)}, faint, 0.8);
    text(left + plot_width_, at_y(0) + 30, text_size, ChartAnchor::end, chart_.x_label, faint);
    text(left, top - 3, text_size, ChartAnchor::start, chart_.y_label, faint);
    legend_ = top + plot_height + axis_room + 4;
  }

  void add(const ReportSeries& series, const std::string& colour) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      x.push_back(at_x(series.x[i]));
      y.push_back(at_y(series.y[i]));
    }
    line(std::move(x), std::move(y), colour, 1.6, series.is_limit);
    line({left, left + 22}, {legend_ - 3.5, legend_ - 3.5}, colour, 1.6, series.is_limit);
    text(left + 28, legend_, text_size, ChartAnchor::start, fit_text(series.name, text_size, plot_width_ - 30), ink);
    legend_ += legend_line;
  }

  const ReportChart& chart_;
  Range range_;
  double plot_width_;
  Axis x_, y_;
  ChartDrawing drawing_;
  double legend_ = 0;
};

}  // namespace

ChartDrawing draw_chart(const ReportChart& chart, double width) { return Drawer(chart, width).draw(); }

}  // namespace spillway::reports
