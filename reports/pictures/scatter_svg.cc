#include "reports/pictures/scatter_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/axis.h"
#include "base/svg_canvas.h"
#include "base/svg_plot.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"

namespace spillway::reports {
namespace {

constexpr double plot = 420, panel_gap = 104, head = 52, legend_line = 17;
constexpr double panel_width = axis_room + plot + panel_gap;
constexpr std::string_view band = "#F0F0F0";
constexpr std::array<std::string_view, 10> colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                                      "#56B4E9", "#7B3294", "#8C510A", "#4D4D4D", "#B8A800"};

// Of both axes.
struct Range {
  double low = 0, high = 0;
};

Range range_of(const ScatterPanel& panel) {
  Range range{panel.points.front().measured, panel.points.front().measured};
  for (const ScatterPoint& point : panel.points) {
    range.low = std::min({range.low, point.measured, point.predicted});
    range.high = std::max({range.high, point.measured, point.predicted});
  }
  const double room = std::max(std::pow(10, 0.05), std::pow(range.high / range.low, 0.05));
  return {range.low / room, range.high * room};
}

// Powers of ten alone where the axis is longer.
constexpr double most_decades = 2.5;

class ScatterPicture : private SvgCanvas {
 public:
  explicit ScatterPicture(const std::string& title) : title_(title) {}

  std::string draw(const std::vector<ScatterPanel>& panels) {
    const std::size_t across = std::clamp<std::size_t>(panels.size(), 1, 2);
    const double width = 2 * margin + static_cast<double>(across) * panel_width;
    text(margin, margin + 8, 17, fit_text(title_, 17, width - 2 * margin), ink, "start");
    double top = margin + head, bottom = top;
    for (std::size_t i = 0; i < panels.size(); ++i) {
      if (i % across == 0) top = bottom;
      const double below = panel(panels[i], margin + axis_room + static_cast<double>(i % across) * panel_width, top);
      bottom = std::max(bottom, below);
    }
    return document(width, bottom, title_);
  }

 private:
  // Returns where the next panel may begin.
  double panel(const ScatterPanel& of, double left, double top) {
    const Range range = range_of(of);
    const Axis x(range.low, range.high, left, left + plot, Axis::Kind::logarithmic);
    const Axis y(range.low, range.high, top + plot, top, Axis::Kind::logarithmic);
    const std::vector<double> ticks = decade_ticks(range.low, range.high, most_decades);
    text(left, top - 10, 14, of.title, ink, "start");
    put("<clipPath id=\"p{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/></clipPath>\n", clips_, left,
        top, plot, plot);
    put("<g clip-path=\"url(#p{})\">\n", clips_);
    put("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"{}\"/>\n", left,
        y.at(1.1 * range.low), left + plot, y.at(1.1 * range.high), left + plot, y.at(0.9 * range.high), left,
        y.at(0.9 * range.low), band);
    put("</g>\n");
    draw_axes(*this, {x, ticks, fmt::format("measured ({})", of.unit)}, {y, ticks, "predicted"});
    put("<g clip-path=\"url(#p{})\">\n", clips_++);
    put("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\"/>\n", left, top + plot, left + plot, top, faint);
    for (const ScatterPoint& point : of.points) {
      const std::string_view colour = colours[point.source % colours.size()];
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.55\" stroke=\"{}\" "
          "stroke-width=\"0.6\"/>\n",
          x.at(point.measured), y.at(point.predicted), point.is_fit ? "none" : colour, colour);
    }
    put("</g>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", left, top,
        plot, plot, faint);
    return legend(of, left, top + plot + 60);
  }

  double legend(const ScatterPanel& of, double left, double top) {
    for (const ScatterLine& line : of.legend) {
      const std::string_view colour = colours[line.source % colours.size()];
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", left + 4, top - 4,
          line.is_fit ? "none" : colour, colour);
      text(left + 14, top, 11, fit_text(line.words, 11, panel_width - 20), ink, "start");
      top += legend_line;
    }
    return top + head;
  }

  std::string title_;
  int clips_ = 0;
};

}  // namespace

std::string scatter_svg(const std::string& title, std::vector<ScatterPanel> panels) {
  for (ScatterPanel& panel : panels)
    std::erase_if(panel.points, [](const ScatterPoint& point) { return point.measured <= 0 || point.predicted <= 0; });
  std::erase_if(panels, [](const ScatterPanel& panel) { return panel.points.empty(); });
  return ScatterPicture(title).draw(panels);
}

}  // namespace spillway::reports
