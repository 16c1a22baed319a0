#include "validation/scatter_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "traces/base/svg_canvas.h"
#include "traces/base/svg_text.h"

namespace spillway {
namespace {

constexpr double margin = 24, plot = 420, axis_room = 76, panel_gap = 104, head = 52, legend_line = 17;
constexpr double panel_width = axis_room + plot + panel_gap;
constexpr std::string_view ink = svg_ink, faint = svg_faint, grid = "#E6E6E6", band = "#F0F0F0";
constexpr std::array<std::string_view, 10> colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                                      "#56B4E9", "#7B3294", "#8C510A", "#4D4D4D", "#B8A800"};

// Figures that share an axis.
struct Family {
  std::string_view title, unit;
  std::vector<Metric> metrics;
  double scale = 1;  // of the axis' unit, in base units
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"Iteration time", "s", {Metric::iteration_time}, 1},
      {"Throughput", "samples/s or tokens/s, as published", {Metric::throughput}, 1},
      {"Memory",
       "GiB",
       {Metric::peak_allocated, Metric::peak_reserved, Metric::state_memory, Metric::activation_memory,
        Metric::layer_state_memory, Metric::layer_kept_memory},
       1073741824},
      {"Layer time", "ms", {Metric::layer_forward_time, Metric::layer_backward_time, Metric::layer_time}, 1e-3},
      {"Model flops utilisation", "%", {Metric::mfu}, 0.01}};
  return all;
}

bool holds(const Family& family, Metric metric) {
  return std::find(family.metrics.begin(), family.metrics.end(), metric) != family.metrics.end();
}

struct Point {
  double measured = 0, predicted = 0;
  bool is_fit = false;
  std::size_t source = 0;  // index into Panel::sources
};
struct Panel {
  const Family* family = nullptr;
  std::vector<std::string> sources;
  std::vector<Point> points;
  double low = 0, high = 0;  // decimal logarithms at the ends of both axes
};

std::vector<Panel> panels_of(const std::vector<CaseOutcome>& outcomes) {
  std::vector<Panel> panels;
  for (const Family& family : families()) {
    Panel panel{&family, {}, {}, 1e9, -1e9};
    for (const CaseOutcome& outcome : outcomes) {
      const Case& one = *outcome.measured;
      if (!outcome.skipped.empty() || outcome.predicted <= 0 || !holds(family, one.metric)) continue;
      auto source = std::find(panel.sources.begin(), panel.sources.end(), one.source);
      if (source == panel.sources.end()) source = panel.sources.insert(source, one.source);
      const double scale = unit_scale(one.metric, one.unit) / family.scale;
      const Point point{one.measured * scale, outcome.predicted * scale, one.role == "fit",
                        static_cast<std::size_t>(source - panel.sources.begin())};
      panel.low = std::min({panel.low, std::log10(point.measured), std::log10(point.predicted)});
      panel.high = std::max({panel.high, std::log10(point.measured), std::log10(point.predicted)});
      panel.points.push_back(point);
    }
    if (panel.points.empty()) continue;
    const double room = std::max(0.05, 0.05 * (panel.high - panel.low));
    panel.low -= room;
    panel.high += room;
    panels.push_back(std::move(panel));
  }
  return panels;
}

// 1, 2 and 5 times powers of ten; powers of ten alone where the axis is long.
std::vector<double> ticks(double low, double high) {
  std::vector<double> found;
  const bool is_long = high - low > 2.5;
  for (double power = std::floor(low); power <= high; ++power)
    for (const double step : {1.0, 2.0, 5.0}) {
      const double at = power + std::log10(step);
      if (at >= low && at <= high && (!is_long || step < 2)) found.push_back(at);
    }
  return found;
}

std::string number(double value) {
  if (value < 9999.5) return fmt::format("{:.4g}", value);
  return fmt::format("{:.4g}k", value / 1000);
}

class Picture : private SvgCanvas {
 public:
  Picture(const std::string& title, const std::vector<CaseSummary>& summaries) : title_(title), summaries_(summaries) {}

  std::string draw(const std::vector<Panel>& panels) {
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
  double panel(const Panel& of, double left, double top) {
    const double per_decade = plot / (of.high - of.low);
    const auto x = [&](double log) { return left + (log - of.low) * per_decade; };
    const auto y = [&](double log) { return top + plot - (log - of.low) * per_decade; };
    axes(of, left, top);
    const double up = std::log10(1.1), down = std::log10(0.9);
    put("<clipPath id=\"p{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/></clipPath>\n", clips_, left,
        top, plot, plot);
    put("<g clip-path=\"url(#p{})\">\n", clips_++);
    put("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"{}\"/>\n", x(of.low),
        y(of.low + up), x(of.high), y(of.high + up), x(of.high), y(of.high + down), x(of.low), y(of.low + down), band);
    for (const double at : ticks(of.low, of.high))
      put("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\" stroke=\"{6}\"/>\n", x(at), top, top + plot,
          left, y(at), left + plot, grid);
    put("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"{}\"/>\n", x(of.low), y(of.low), x(of.high), y(of.high),
        faint);
    for (const Point& point : of.points) {
      const std::string_view colour = colours[point.source % colours.size()];
      put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.55\" stroke=\"{}\" "
          "stroke-width=\"0.6\"/>\n",
          x(std::log10(point.measured)), y(std::log10(point.predicted)), point.is_fit ? "none" : colour, colour);
    }
    put("</g>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", left, top,
        plot, plot, faint);
    return legend(of, left, top + plot + 60);
  }

  void axes(const Panel& of, double left, double top) {
    const double per_decade = plot / (of.high - of.low);
    text(left, top - 10, 14, of.family->title, ink, "start");
    for (const double at : ticks(of.low, of.high)) {
      const double along = (at - of.low) * per_decade;
      text(left + along, top + plot + 16, 11, number(std::pow(10, at)), faint, "middle");
      text(left - 6, top + plot - along + 4, 11, number(std::pow(10, at)), faint, "end");
    }
    text(left + plot / 2, top + plot + 34, 12, fmt::format("measured ({})", of.family->unit), ink, "middle");
    text_upwards(left - 54, top + plot / 2, 12, "predicted");
  }

  double legend(const Panel& of, double left, double top) {
    for (std::size_t i = 0; i < of.sources.size(); ++i)
      for (const CaseSummary& summary : summaries_) {
        if (summary.source != of.sources[i] || !holds(*of.family, summary.metric)) continue;
        put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"{}\"/>\n", left + 4, top - 4,
            summary.role == "fit" ? "none" : colours[i % colours.size()], colours[i % colours.size()]);
        std::string words = summary.source;
        if (of.family->metrics.size() > 1) words += fmt::format(", {}", to_string(summary.metric));
        if (summary.role == "fit") words += ", used in a fit";
        text(left + 14, top, 11,
             fit_text(fmt::format("{}: {} cases, median {:.1f} %, 90th percentile {:.1f} %", words, summary.errors.n,
                                  100 * summary.errors.median_abs, 100 * summary.errors.p90_abs),
                      11, panel_width - 20),
             ink, "start");
        top += legend_line;
      }
    return top + head;
  }

  std::string title_;
  const std::vector<CaseSummary>& summaries_;
  int clips_ = 0;
};

}  // namespace

std::string scatter_svg(const std::string& title, const std::vector<CaseOutcome>& outcomes,
                        const std::vector<CaseSummary>& summaries) {
  return Picture(title, summaries).draw(panels_of(outcomes));
}

}  // namespace spillway
