// Axes of a plot on a canvas: grid lines and numbers at the ticks, words along the sides.
#pragma once

#include <string>
#include <vector>

#include "base/axis.h"
#include "base/svg_canvas.h"

namespace spillway {

struct PlotAxis {
  Axis axis;  // its pixels are the plot's
  std::vector<double> ticks;
  std::string words;
};

// x runs to the right, y upwards.
void draw_axes(SvgCanvas& canvas, const PlotAxis& x, const PlotAxis& y);
// x alone, from the pixel `top` to `bottom`.
void draw_x_axis(SvgCanvas& canvas, const PlotAxis& x, double top, double bottom);

}  // namespace spillway
