#include "reports/sweep_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_plot.h"
#include "base/svg_text.h"
#include "reports/report_document.h"
#include "studies/sweep/sweep_front.h"

namespace spillway::reports {
namespace {

constexpr double margin = 24, small = 11, normal = 13, large = 16;
constexpr std::string_view front_colour = svg_colours[0], worse_colour = "#E69F00", pale = "#9A9A9A";

// In the picture's unit; a life is longer where its value is smaller.
double shown(Objective objective, double value) {
  switch (objective) {
    case Objective::peak_memory:
      return value / (1 << 30);
    case Objective::gpu_time_per_token:
    case Objective::cost_per_token:
      return value * 1e6;
    case Objective::energy_per_token:
      return value / 3.6;
    case Objective::ssd_life:
      return 1 / value;
    case Objective::step_time:
    case Objective::gpus:
      return value;
  }
  return value;
}

double heading(SvgCanvas& canvas, const SweepFile& file, const std::string& words, double width) {
  double y = margin;
  for (const std::string& line :
       wrap_text(file.title.empty() ? "Sweep" : file.title, large * 1.08, width - 2 * margin, 2)) {
    canvas.text(margin, y + large, large, line, svg_ink, "start", svg_bold);
    y += large + 6;
  }
  for (const std::string& line : wrap_text(words, normal, width - 2 * margin, 3)) {
    canvas.text(margin, y + normal, normal, line, svg_faint);
    y += normal + 5;
  }
  return y + 18;
}

struct FrontDot {
  const SweepRow* row;
  double x, y;  // shown
};

class FrontPicture {
 public:
  FrontPicture(const SweepFile& file, const SweepOutcome& outcome, Objective x, Objective y)
      : file_(file), x_of_(x), y_of_(y) {
    for (const SweepRow& row : outcome.rows) {
      if (!row.ran()) continue;
      const FrontDot dot{&row, shown(x, row.replayed.value(x)), shown(y, row.replayed.value(y))};
      if (std::isfinite(dot.x) && std::isfinite(dot.y)) dots_.push_back(dot);
    }
  }

  std::string draw() {
    if (dots_.empty()) {
      const double y = heading(canvas_, file_, "Nothing was replayed that could be shown.", width);
      return canvas_.document(width, y + margin, file_.title);
    }
    const double top = heading(canvas_, file_, summary(), width), bottom = top + plot_height;
    const auto range = [this](double FrontDot::*of) {
      double low = dots_.front().*of, high = low;
      for (const FrontDot& dot : dots_) low = std::min(low, dot.*of), high = std::max(high, dot.*of);
      return std::pair(low, high);
    };
    const auto [low_x, high_x] = range(&FrontDot::x);
    const auto [low_y, high_y] = range(&FrontDot::y);
    const Axis x = Axis::around(low_x, high_x, left, left + plot_width), y = Axis::around(low_y, high_y, bottom, top);
    draw_axes(canvas_, {x, x.ticks(6), objective_title(x_of_)}, {y, y.ticks(6), objective_title(y_of_)});
    staircase(x, y);
    for (const FrontDot& dot : dots_)
      if (!dot.row->on_front) other(dot, x.at(dot.x), y.at(dot.y));
    const double list = front(x, y, top);
    legend(bottom + 56);
    return canvas_.document(width, std::max(bottom + 80, list) + margin, file_.title);
  }

 private:
  static constexpr double width = 980, plot_width = 540, plot_height = 400, left = 92, list_left = 664;
  static constexpr std::size_t most_listed = 14;

  [[nodiscard]] std::string summary() const {
    const auto count = [this](bool SweepRow::*what) {
      return std::count_if(dots_.begin(), dots_.end(), [&](const FrontDot& dot) { return dot.row->*what; });
    };
    return fmt::format("{} points replayed, {} meet the requirements, {} on the front", dots_.size(),
                       count(&SweepRow::does), count(&SweepRow::on_front));
  }

  // Through the front over these two objectives alone.
  void staircase(const Axis& x, const Axis& y) {
    SweepFront front(2);
    const auto values = [this](const FrontDot& dot) {
      return SweepValues{dot.row->replayed.value(x_of_), dot.row->replayed.value(y_of_)};
    };
    for (const FrontDot& dot : dots_)
      if (dot.row->does) front.add(values(dot));
    std::vector<SweepValues> steps = front.points();
    std::sort(steps.begin(), steps.end());
    std::string path;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double at_x = x.at(shown(x_of_, steps[i][0])), at_y = y.at(shown(y_of_, steps[i][1]));
      path += i == 0 ? fmt::format("M{:.1f} {:.1f}", at_x, at_y) : fmt::format("H{:.1f}V{:.1f}", at_x, at_y);
    }
    if (steps.size() > 1)
      canvas_.put("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, front_colour);
  }

  void other(const FrontDot& dot, double x, double y) {
    if (dot.row->does)
      canvas_.put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#FFFFFF\" stroke=\"{}\"/>\n", x, y, svg_faint);
    else
      cross(x, y);
  }
  void cross(double x, double y) {
    canvas_.put("<path d=\"M{:.1f} {:.1f}l5 5m0 -5l-5 5\" stroke=\"{}\" fill=\"none\"/>\n", x - 2.5, y - 2.5, pale);
  }
  void disc(double x, double y) {
    canvas_.put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"#FFFFFF\"/>\n", x, y, front_colour);
  }

  // Returns where the list ends.
  double front(const Axis& x, const Axis& y, double top) {
    std::vector<const FrontDot*> on_front;
    for (const FrontDot& dot : dots_)
      if (dot.row->on_front) on_front.push_back(&dot);
    std::stable_sort(on_front.begin(), on_front.end(),
                     [](const FrontDot* a, const FrontDot* b) { return a->x < b->x; });
    const double room = width - margin - list_left;
    double at = top + small, above_x = -100, above_y = 0;
    canvas_.text(list_left, at, normal, "On the front", svg_ink, "start", svg_bold);
    for (std::size_t i = 0; i < on_front.size(); ++i) {
      const double dot_x = x.at(on_front[i]->x), dot_y = y.at(on_front[i]->y);
      disc(dot_x, dot_y);
      if (i >= most_listed) continue;
      // Below where the one before stands in the way.
      const bool is_close = dot_x - above_x < 18 && std::abs(dot_y - above_y) < 14;
      if (!is_close) above_x = dot_x, above_y = dot_y;
      canvas_.text(is_close ? dot_x - 7 : dot_x + 7, is_close ? dot_y + 14 : dot_y - 6, small, std::to_string(i + 1),
                   svg_ink, is_close ? "end" : "start", std::string(svg_bold) + std::string(svg_rim));
      at += 8;
      for (const std::string& line :
           wrap_text(fmt::format("{}. {}", i + 1, on_front[i]->row->candidate.name), small, room, 3))
        canvas_.text(list_left, at += small + 3, small, line, svg_ink);
    }
    if (on_front.size() > most_listed)
      canvas_.text(list_left, at += small + 11, small, fmt::format("and {} more", on_front.size() - most_listed),
                   svg_faint);
    return at;
  }

  void legend(double y) {
    disc(left + 5, y);
    canvas_.text(left + 16, y + 4, small, "on the front", svg_faint);
    canvas_.put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#FFFFFF\" stroke=\"{}\"/>\n", left + 125, y,
                svg_faint);
    canvas_.text(left + 136, y + 4, small, "meets the requirements", svg_faint);
    cross(left + 305, y);
    canvas_.text(left + 316, y + 4, small, "does not", svg_faint);
  }

  const SweepFile& file_;
  Objective x_of_, y_of_;
  std::vector<FrontDot> dots_;
  SvgCanvas canvas_;
};

// From pale to dark: ever darker in greyscale too.
struct Shade {
  std::string fill;
  std::string_view ink;
};
Shade shade_of(double share) {
  constexpr std::array<std::array<double, 3>, 4> stops = {
      {{0xF1, 0xF5, 0xFA}, {0x9E, 0xC5, 0xE3}, {0x31, 0x82, 0xBD}, {0x08, 0x30, 0x6B}}};
  const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
  const std::size_t low = std::min<std::size_t>(static_cast<std::size_t>(at), stops.size() - 2);
  const double part = at - static_cast<double>(low);
  const auto channel = [&](std::size_t c) {
    return static_cast<int>(std::lround(stops[low][c] + part * (stops[low + 1][c] - stops[low][c])));
  };
  return {fmt::format("#{:02X}{:02X}{:02X}", channel(0), channel(1), channel(2)), share > 0.5 ? "#FFFFFF" : svg_ink};
}

double widest(const std::vector<std::string>& texts, double size) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, size));
  return width;
}

class MapPicture {
 public:
  MapPicture(const SweepFile& file, const SweepMap& map, Objective objective)
      : file_(file), map_(map), objective_(objective) {
    bool any = false;
    for (const SweepMap::Cell& cell : map.cells) {
      if (!std::isfinite(cell.value) || cell.source == SweepMap::Source::none) continue;
      best_ = any ? std::min(best_, cell.value) : cell.value;
      worst_ = any ? std::max(worst_, cell.value) : cell.value;
      any = true;
    }
  }

  std::string draw() {
    left_ = margin + 26 + std::min(180.0, widest(map_.up, small)) + 10;
    cell_ = std::clamp(760.0 / static_cast<double>(map_.across.size()), 26.0, 92.0);
    const double across = cell_ * static_cast<double>(map_.across.size());
    width_ = std::max(560.0, left_ + across + margin);
    const double top =
        heading(canvas_, file_,
                fmt::format("{}: the best for each {} and {}. Darker is better; ~ is an estimate, the others were "
                            "replayed; empty: no point can meet the requirements, or none has an estimate.",
                            objective_title(objective_), map_.across_name, map_.up_name),
                width_);
    const double row = 30, bottom = top + row * static_cast<double>(map_.up.size());
    for (std::size_t y = 0; y < map_.up.size(); ++y) {
      const double at = bottom - row * static_cast<double>(y + 1);
      canvas_.text(left_ - 8, at + row / 2 + 4, small, fit_text(map_.up[y], small, 180), svg_faint, "end");
      for (std::size_t x = 0; x < map_.across.size(); ++x)
        cell(map_.at(y, x), left_ + cell_ * static_cast<double>(x), at, row);
    }
    double below = bottom + 17;
    const bool turned = widest(map_.across, small) > cell_ - 4;
    for (std::size_t x = 0; x < map_.across.size(); ++x) {
      const double middle = left_ + cell_ * (static_cast<double>(x) + 0.5);
      const std::string label = fit_text(map_.across[x], small, turned ? 150 : cell_ - 2);
      if (turned)
        canvas_.put(
            "<text transform=\"translate({:.1f},{:.1f}) rotate(-60)\" font-size=\"{:g}\" fill=\"{}\" "
            "text-anchor=\"end\">{}</text>\n",
            middle + 4, bottom + 12, small, svg_faint, svg_escape(label));
      else
        canvas_.text(middle, below, small, label, svg_faint, "middle");
    }
    if (turned) below += std::min(150.0, widest(map_.across, small)) * 0.87;
    canvas_.text(left_ + across / 2, below + 22, normal, map_.across_name, svg_ink, "middle");
    canvas_.text_upwards(margin + 8, (top + bottom) / 2, normal, map_.up_name);
    scale(below + 44);
    return canvas_.document(width_, below + 74 + margin, file_.title);
  }

 private:
  [[nodiscard]] double share_of(double value) const {
    if (worst_ <= best_) return 1;
    const bool far = best_ > 0 && worst_ / best_ > 8;
    return far ? std::log(worst_ / value) / std::log(worst_ / best_) : (worst_ - value) / (worst_ - best_);
  }
  void cell(const SweepMap::Cell& of, double x, double y, double height) {
    if (of.source == SweepMap::Source::none || !std::isfinite(of.value)) {
      canvas_.rect(x, y, cell_, height, "#FFFFFF", " stroke=\"#D0D0D0\"");
      return;
    }
    const Shade shade = shade_of(share_of(of.value));
    canvas_.rect(x, y, cell_, height, shade.fill, " stroke=\"#FFFFFF\"");
    const double value = shown(objective_, of.value);
    std::string words = value >= 999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
    if (of.source == SweepMap::Source::screened) words = "~" + words;
    if (text_width(words, small) + 2 <= cell_)
      canvas_.text(x + cell_ / 2, y + height / 2 + 4, small, words, shade.ink, "middle",
                   of.value <= best_ ? svg_bold : std::string_view());
  }
  void scale(double y) {
    constexpr int steps = 24;
    constexpr double step = 8;
    const std::string worst = number_text(shown(objective_, worst_)), best = number_text(shown(objective_, best_));
    const double from = left_ + text_width(worst, small) + 8;
    canvas_.text(from - 6, y + 10, small, worst, svg_faint, "end");
    for (int i = 0; i < steps; ++i)
      canvas_.rect(from + step * i, y, step + 0.3, 12, shade_of(static_cast<double>(i) / (steps - 1)).fill);
    canvas_.text(from + step * steps + 6, y + 10, small, best, svg_faint);
  }

  const SweepFile& file_;
  const SweepMap& map_;
  Objective objective_;
  double best_ = 0, worst_ = 0, left_ = 0, cell_ = 0, width_ = 0;
  SvgCanvas canvas_;
};

class TornadoPicture {
 public:
  TornadoPicture(const SweepFile& file, const SweepTornado& tornado, Objective objective)
      : file_(file), tornado_(tornado), objective_(objective) {}

  std::string draw() {
    const double top = heading(canvas_, file_,
                               fmt::format("What one axis at a time does to the best point ({}): {}", tornado_.label,
                                           objective_title(objective_)),
                               width) +
                       14;
    double low = value(tornado_.value), high = low;
    for (const SweepSwing& swing : tornado_.swings)
      for (const double end : {value(swing.least.value), value(swing.most.value)})
        low = std::min(low, end), high = std::max(high, end);
    const double left = margin + name_room, right = width - margin - 20;
    const Axis x = Axis::around(low, high, left, right);
    const double bottom = top + row * static_cast<double>(tornado_.swings.size());
    draw_x_axis(canvas_, {x, x.ticks(6), objective_title(objective_)}, top, bottom);
    for (std::size_t i = 0; i < tornado_.swings.size(); ++i)
      bar(tornado_.swings[i], x, top + row * static_cast<double>(i), left);
    const double base = x.at(value(tornado_.value));
    canvas_.line(base, top - 6, base, bottom, svg_ink, " stroke-width=\"1.5\"");
    canvas_.text(base, top - 11, small, "best " + number_text(value(tornado_.value)), svg_ink, "middle");
    return canvas_.document(width, bottom + 48 + margin, file_.title);
  }

 private:
  static constexpr double width = 940, name_room = 236, row = 44;

  [[nodiscard]] double value(double of) const { return shown(objective_, of); }

  void bar(const SweepSwing& swing, const Axis& x, double top, double left) {
    canvas_.text(left - 10, top + 17, normal,
                 fit_text(fmt::format("{} = {}", swing.axis, swing.option), normal, name_room - 10), svg_ink, "end");
    std::string note = fmt::format("{} other value{} replayed", swing.replayed, swing.replayed == 1 ? "" : "s");
    if (swing.failed + swing.left_out > 0) note += fmt::format(", {} not possible", swing.failed + swing.left_out);
    canvas_.text(left - 10, top + 32, small - 1, fit_text(note, small - 1, name_room - 10), svg_faint, "end");
    const double base = x.at(value(tornado_.value));
    const auto half = [&](const SweepSwing::End& end, std::string_view fill) {
      const double at = x.at(value(end.value)), width_of = std::abs(at - base);
      if (width_of < 0.05) return;
      canvas_.rect(std::min(at, base), top + 7, width_of, 22, fill, " stroke=\"#1A1A1A\" stroke-width=\"0.6\"");
      label(end, at, base, top + 22, fill == front_colour);
    };
    half(swing.most, worse_colour);
    half(swing.least, front_colour);
    if (swing.most.value == swing.least.value)
      canvas_.text(base + 8, top + 22, small, swing.replayed > 0 ? "no difference" : "nothing else is possible",
                   svg_faint, "start", svg_rim);
  }

  // Inside its bar where it has room, else beyond it, else on the other side of the base line.
  void label(const SweepSwing::End& end, double at, double base, double y, bool is_dark) {
    const std::string words = fmt::format("{}: {}", end.option, number_text(value(end.value)));
    const double room = text_width(words, small);
    const bool rightwards = at > base;
    if (room + 10 < std::abs(at - base))
      canvas_.text(rightwards ? at - 5 : at + 5, y, small, words, is_dark ? "#FFFFFF" : svg_ink,
                   rightwards ? "end" : "start");
    else if (rightwards ? at + room + 6 < width - 4 : at - room - 6 > margin + name_room)
      canvas_.text(rightwards ? at + 5 : at - 5, y, small, words, svg_ink, rightwards ? "start" : "end", svg_rim);
    else
      canvas_.text(rightwards ? base - 6 : base + 6, y, small, words, svg_ink, rightwards ? "end" : "start", svg_rim);
  }

  const SweepFile& file_;
  const SweepTornado& tornado_;
  Objective objective_;
  SvgCanvas canvas_;
};

}  // namespace

std::string objective_title(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "Step time (s)";
    case Objective::peak_memory:
      return "Peak memory (GiB per GPU)";
    case Objective::gpus:
      return "GPUs";
    case Objective::gpu_time_per_token:
      return "GPU time (\xC2\xB5s per token)";
    case Objective::cost_per_token:
      return "Cost (USD per million tokens)";
    case Objective::energy_per_token:
      return "Energy (kWh per million tokens)";
    case Objective::ssd_life:
      return "Life of the drives (years)";
  }
  return "";
}

std::string sweep_front_svg(const SweepFile& file, const SweepOutcome& outcome, Objective x, Objective y) {
  return FrontPicture(file, outcome, x, y).draw();
}

std::string sweep_map_svg(const SweepFile& file, const SweepMap& map, Objective objective) {
  return MapPicture(file, map, objective).draw();
}

std::string sweep_tornado_svg(const SweepFile& file, const SweepTornado& tornado, Objective objective) {
  return TornadoPicture(file, tornado, objective).draw();
}

}  // namespace spillway::reports
