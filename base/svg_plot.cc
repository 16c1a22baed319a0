#include "base/svg_plot.h"

#include "base/number_text.h"

namespace spillway {
namespace {

constexpr double small = 11, normal = 13;

}  // namespace

void draw_x_axis(SvgCanvas& canvas, const PlotAxis& x, double top, double bottom) {
  for (const double tick : x.ticks) {
    canvas.line(x.axis.at(tick), top, x.axis.at(tick), bottom, svg_grid);
    canvas.text(x.axis.at(tick), bottom + 17, small, number_text(tick), svg_faint, "middle");
  }
  canvas.text((x.axis.from() + x.axis.to()) / 2, bottom + 37, normal, x.words, svg_ink, "middle");
}

void draw_axes(SvgCanvas& canvas, const PlotAxis& x, const PlotAxis& y) {
  const double left = x.axis.from(), right = x.axis.to(), bottom = y.axis.from(), top = y.axis.to();
  draw_x_axis(canvas, x, top, bottom);
  for (const double tick : y.ticks) {
    canvas.line(left, y.axis.at(tick), right, y.axis.at(tick), svg_grid);
    canvas.text(left - 8, y.axis.at(tick) + 4, small, number_text(tick), svg_faint, "end");
  }
  canvas.line(left, bottom, right, bottom, svg_faint);
  canvas.line(left, top, left, bottom, svg_faint);
  canvas.text_upwards(left - 62, (top + bottom) / 2, normal, y.words);
}

}  // namespace spillway
