#include "reports/pictures/pipeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/axis.h"
#include "base/input_error.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"

namespace spillway::reports {
namespace {

using Kind = PipelineOpKind;

constexpr double stage_height = 26, copy_height = 10, memory_height = 26, stage_gap = 12;
constexpr std::size_t most_operations = 100'000;
constexpr std::string_view memory_fill = "#B9C7D6";

struct Colour {
  int red = 0, green = 0, blue = 0;
  [[nodiscard]] std::string text() const { return fmt::format("#{:02X}{:02X}{:02X}", red, green, blue); }
  // Towards black by `share` of the way.
  [[nodiscard]] Colour darker(double share) const {
    const auto part = [share](int value) { return static_cast<int>(value * (1 - share)); };
    return {part(red), part(green), part(blue)};
  }
  [[nodiscard]] bool is_dark() const { return 3 * red + 6 * green + blue < 1250; }
};

// Okabe and Ito's.
constexpr Colour colour_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return {0x56, 0xB4, 0xE9};
    case Kind::backward:
    case Kind::input_gradient:
      return {0xE6, 0x9F, 0x00};
    case Kind::weight_gradient:
      return {0x2B, 0xB5, 0x8D};
    case Kind::recompute:
      return {0xCC, 0x79, 0xA7};
    case Kind::paired:
      return {0xF0, 0xE4, 0x42};
    case Kind::offload:
      return {0x8C, 0x8C, 0x8C};
    case Kind::reload:
      return {0xC4, 0xC4, 0xC4};
  }
  return {};
}

constexpr std::array<std::pair<Kind, std::string_view>, 8> legend_entries = {{
    {Kind::forward, "forward"},
    {Kind::input_gradient, "backward of the input"},
    {Kind::backward, "backward"},
    {Kind::weight_gradient, "backward of the weights"},
    {Kind::recompute, "recomputation"},
    {Kind::paired, "forward and backward overlapped"},
    {Kind::offload, "offload"},
    {Kind::reload, "reload"},
}};

class PipelinePicture : private SvgCanvas {
 public:
  PipelinePicture(const PipelinePlan& plan, const PipelineTimeline& timeline, const ActivationProfile& memory,
                  const PipelineSvgOptions& options)
      : plan_(plan), timeline_(timeline), memory_(memory), options_(options) {
    width_ = std::clamp(options.width, 640, 8192);
    left_ = margin + text_width(fmt::format("device {}", plan.devices - 1), small) + 12;
    for (const double peak : memory.peaks) most_memory_ = std::max(most_memory_, peak);
    const std::string widest = fmt::format("peak {:.3g}", most_memory_) + "00";
    plot_ = width_ - left_ - margin - text_width(widest, small) - 10;
    span_ = std::max<Ticks>(timeline.makespan, 1);
    for (const auto& lane : timeline.copies)
      if (!lane.empty()) span_ = std::max(span_, lane.back().end), has_copies_ = true;
    row_room_ = stage_height + (has_copies_ ? copy_height + 2 : 0) + memory_height;
  }

  std::string draw() {
    y_ = margin;
    heading();
    legend();
    const double top = y_;
    y_ += static_cast<double>(plan_.devices) * (row_room_ + stage_gap);
    axis(top);
    double at = top;
    for (std::size_t d = 0; d < plan_.compute.size(); ++d, at += row_room_ + stage_gap) row(d, at);
    return document(width_, y_ + margin, options_.title);
  }

 private:
  [[nodiscard]] double x_of(Ticks at) const {
    return left_ + plot_ * static_cast<double>(at) / static_cast<double>(span_);
  }
  [[nodiscard]] std::string units(Ticks ticks) const {
    return fmt::format("{:.6g}", static_cast<double>(ticks) / options_.ticks_per_unit);
  }

  void paragraph(const std::string& words, double size, std::string_view fill, std::string_view more = "") {
    for (const std::string& line : wrap_text(words, size * 1.08, width_ - 2 * margin, 3)) {
      text(margin, y_ + size, size, line, fill, "start", more);
      y_ += size + 6;
    }
  }
  void heading() {
    paragraph(options_.title, large, ink, " font-weight=\"bold\"");
    paragraph(fmt::format("Takes {}. Idle {:.2f} % of the whole step, {:.2f} % of the longest device's own span. "
                          "At most {:.4g} micro-batches of activations on a device.",
                          units(timeline_.makespan), 100 * timeline_.bubble_of_makespan(),
                          100 * timeline_.bubble_of_longest_span(), most_memory_),
              small + 1, faint);
    y_ += 4;
  }

  void legend() {
    std::array<bool, legend_entries.size()> used{};
    for (std::size_t i = 0; i < legend_entries.size(); ++i)
      for (const auto* lanes : {&plan_.compute, &plan_.copies})
        for (const auto& lane : *lanes)
          for (const PipelineOp& op : lane) used[i] = used[i] || op.kind == legend_entries[i].first;
    std::vector<std::pair<std::string, std::string>> entries;
    for (std::size_t i = 0; i < legend_entries.size(); ++i)
      if (used[i]) entries.emplace_back(colour_of(legend_entries[i].first).text(), legend_entries[i].second);
    if (plan_.chunks_of_device() > 1)
      entries.emplace_back(colour_of(Kind::forward).darker(0.45).text(),
                           plan_.routes.size() > 1 ? "darker: the other direction" : "darker: deeper chunks");
    entries.emplace_back(memory_fill, "activations held");
    double x = margin;
    for (const auto& [fill, words] : entries) {
      const double room = 18 + text_width(words, small) + 16;
      if (x + room > width_ - margin && x > margin) x = margin, y_ += 18;
      rect(x, y_ + 1, 12, 12, fill);
      text(x + 18, y_ + small, small, words, faint);
      x += room;
    }
    y_ += 26;
  }

  void axis(double top) {
    const double longest = static_cast<double>(span_) / options_.ticks_per_unit;
    for (const double at : round_ticks(0, longest, 10)) {
      const double x = left_ + plot_ * at / longest;
      line(x, top, x, y_, grid);
      text(x, y_ + small + 4, small, fmt::format("{:.6g}", at), faint, "middle");
    }
    y_ += small + 8;
  }

  [[nodiscard]] Colour shade(const PipelineOp& op) const {
    const auto chunks = static_cast<double>(plan_.chunks_of_device());
    return chunks > 1 ? colour_of(op.kind).darker(0.45 * op.pass.chunk / (chunks - 1)) : colour_of(op.kind);
  }
  [[nodiscard]] std::string label(const PipelineOp& op) const {
    const auto pass = [this](const PipelinePass& p) {
      return plan_.slices > 1 ? fmt::format("{}/{}", p.micro_batch, p.slice) : std::to_string(p.micro_batch);
    };
    return op.kind == Kind::paired ? pass(op.pass) + "&" + pass(op.second) : pass(op.pass);
  }

  void row(std::size_t d, double top) {
    text(margin, top + stage_height / 2 + 4, small, fmt::format("device {}", d), ink);
    for (std::size_t i = 0; i < plan_.compute[d].size(); ++i)
      pass(plan_.compute[d][i], timeline_.compute[d][i], top, stage_height);
    double below = top + stage_height;
    if (has_copies_) {
      for (std::size_t i = 0; i < plan_.copies[d].size(); ++i)
        pass(plan_.copies[d][i], timeline_.copies[d][i], below + 2, copy_height);
      below += copy_height + 2;
    }
    held(d, below + 2, memory_height - 2);
    text(left_ + plot_ + 8, below + memory_height - 6, small, fmt::format("peak {:.4g}", memory_.peaks[d]), faint);
  }

  void pass(const PipelineOp& op, TickSpan span, double top, double height) {
    const double x = x_of(span.begin), width = x_of(span.end) - x;
    if (width <= 0) return;
    const Colour fill = shade(op);
    rect(x, top, width, height, fill.text(), width > 3 ? " stroke=\"#FFFFFF\" stroke-width=\"0.8\"" : "");
    const std::string words = label(op);
    const double size = std::min(small, height - 1);
    if (text_width(words, size) + 2 > width || height < stage_height) return;
    text(x + width / 2, top + height / 2 + size * 0.36, size, words, fill.is_dark() ? "#FFFFFF" : ink, "middle");
  }

  // A step curve from the bottom; the limit, if there is one, sets the scale too.
  void held(std::size_t d, double top, double height) {
    const double most = std::max({most_memory_, options_.memory_limit, 1e-9});
    const double bottom = top + height;
    const auto y_of = [&](double level) { return bottom - height * level / most; };
    std::string path = fmt::format("M{:.2f} {:.1f}", x_of(0), bottom);
    double before = bottom;
    for (const ActivationLevel& level : memory_.levels[d]) {
      const double x = x_of(level.at), y = y_of(level.micro_batches);
      fmt::format_to(std::back_inserter(path), "L{:.2f} {:.1f}L{:.2f} {:.1f}", x, before, x, y);
      before = y;
    }
    put("<path d=\"{}L{:.2f} {:.1f}Z\" fill=\"{}\"/>\n", path, x_of(span_), bottom, memory_fill);
    put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", left_, bottom, left_ + plot_,
        bottom, faint);
    if (options_.memory_limit > 0)
      put("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-dasharray=\"4 3\"/>\n",
          left_, y_of(options_.memory_limit), left_ + plot_, y_of(options_.memory_limit), red);
  }

  const PipelinePlan& plan_;
  const PipelineTimeline& timeline_;
  const ActivationProfile& memory_;
  const PipelineSvgOptions& options_;
  int width_ = 0;
  double left_ = 0, plot_ = 0, most_memory_ = 0, row_room_ = 0, y_ = 0;
  Ticks span_ = 1;
  bool has_copies_ = false;
};

}  // namespace

std::string pipeline_svg(const PipelinePlan& plan, const PipelineTimeline& timeline, const ActivationProfile& memory,
                         const PipelineSvgOptions& options) {
  if (plan.operations() > most_operations)
    throw InputError("", "--output", "more than 100,000 passes can't be seen in a picture",
                     "give fewer micro-batches or stages, or write no picture");
  return PipelinePicture(plan, timeline, memory, options).draw();
}

}  // namespace spillway::reports
