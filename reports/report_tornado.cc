#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/report_chart.h"

namespace spillway::reports {
namespace {

constexpr std::string_view light = "#B8B8B8", dark = "#4D4D4D";
constexpr double name_room = 165, end_room = 96, tornado_top = 34, bar = 13, row = 21, tornado_text = 10;

}  // namespace

ChartDrawing draw_tornado(const ReportTornado& tornado, double width) {
  ChartDrawing drawing;
  drawing.width = width;
  drawing.height = tornado_top + row * static_cast<double>(tornado.swings.size()) + 40;
  double least = tornado.base, most = tornado.base;
  for (const ReportSwing& swing : tornado.swings) {
    least = std::min({least, swing.low, swing.high});
    most = std::max({most, swing.low, swing.high});
  }
  if (most <= least) most = least + std::max(1e-12, std::abs(least));
  const double left = name_room + end_room, right = width - end_room;
  const Axis axis(least, most, left, right);
  const auto at_x = [&](double value) { return axis.at(value); };
  const auto text = [&](double x, double y, ChartAnchor anchor, const std::string& words, std::string_view colour,
                        double room, double size = tornado_text) {
    drawing.texts.push_back({x, y, size, anchor, fit_text(words, size, room), std::string(colour)});
  };
  const double bottom = tornado_top + row * static_cast<double>(tornado.swings.size());
  text(0, 14, ChartAnchor::start, tornado.title, svg_ink, width, 12);
  for (const double value : {least, tornado.base, most}) {
    const double x = at_x(value);
    if (value != tornado.base && std::abs(x - at_x(tornado.base)) < 60) continue;
    drawing.lines.push_back({{x, x}, {tornado_top - 4, bottom + 4}, std::string(svg_grid), 0.7, false});
    text(x, bottom + 16, ChartAnchor::middle, number_text(value), svg_faint, end_room);
  }
  double y = tornado_top + row / 2;
  for (const ReportSwing& swing : tornado.swings) {
    const auto side = [&](double value, std::string_view colour) {
      drawing.lines.push_back({{at_x(tornado.base), at_x(value)}, {y, y}, std::string(colour), bar, false});
    };
    const bool same_side = (swing.low - tornado.base) * (swing.high - tornado.base) > 0;
    // Bars on one side would hide each other: the shorter one is drawn last.
    const bool low_is_longer = std::abs(swing.low - tornado.base) >= std::abs(swing.high - tornado.base);
    if (same_side && !low_is_longer) {
      side(swing.high, dark);
      side(swing.low, light);
    } else {
      side(swing.low, light);
      side(swing.high, dark);
    }
    text(name_room - 6, y + 3.5, ChartAnchor::end, swing.name, svg_ink, name_room - 8);
    const double first = std::min({at_x(swing.low), at_x(swing.high), at_x(tornado.base)}),
                 last = std::max({at_x(swing.low), at_x(swing.high), at_x(tornado.base)});
    const bool low_is_left = swing.low <= swing.high;
    text(first - 5, y + 3.5, ChartAnchor::end, low_is_left ? swing.low_input : swing.high_input, svg_faint,
         end_room - 8);
    text(last + 5, y + 3.5, ChartAnchor::start, low_is_left ? swing.high_input : swing.low_input, svg_faint,
         end_room - 8);
    y += row;
  }
  drawing.lines.push_back(
      {{at_x(tornado.base), at_x(tornado.base)}, {tornado_top - 4, bottom + 4}, std::string(svg_ink), 1.1, false});
  text(right, bottom + 32, ChartAnchor::end, tornado.x_label, svg_faint, width - 220);
  drawing.lines.push_back({{0, 16}, {bottom + 28.5, bottom + 28.5}, std::string(light), 9, false});
  text(20, bottom + 32, ChartAnchor::start, "input low", svg_faint, 80);
  drawing.lines.push_back({{90, 106}, {bottom + 28.5, bottom + 28.5}, std::string(dark), 9, false});
  text(110, bottom + 32, ChartAnchor::start, "input high", svg_faint, 80);
  return drawing;
}

}  // namespace spillway::reports
