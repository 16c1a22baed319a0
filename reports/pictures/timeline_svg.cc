#include "reports/pictures/timeline_svg.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/axis.h"
#include "base/number_text.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"
#include "sim/pictures/timeline_lanes.h"
#include "sim/replay/verdict_words.h"

namespace spillway::reports {
namespace {

constexpr double label_room = 168, row_height = 22, row_gap = 5, plot_height = 190, head_room = 40;
constexpr std::array<std::string_view, binding_count> binding_fill = {"#0072B2", "#56B4E9", "#E69F00", "#CC79A7",
                                                                      "#F0E442", "#999999", "#D55E00", "#D9D9D9"};

struct LaneBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  [[nodiscard]] bool meets(const LaneBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Draws from top to bottom; y_ is where the next part begins.
class TimelinePicture : private SvgCanvas {
 public:
  TimelinePicture(const Trace& trace, const Result& result, const SvgOptions& options)
      : trace_(trace),
        result_(result),
        most_lanes_(static_cast<std::size_t>(std::max(options.most_lanes, 1))),
        width_(std::clamp(options.width, 640, 4096)),
        left_(margin + label_room),
        plot_(width_ - margin - left_) {
    span_ = result.replayed;
    if (span_ <= Picos(0))
      for (const Picos end : result.op_end) span_ = std::max(span_, end);
  }

  std::string draw() {
    heading();
    timeline();
    memory();
    breakdown();
    return document(width_, y_ + margin, title());
  }

 private:
  // anchor: "start", "middle", "end". The white rim keeps the text readable on lines and areas.
  void text(double x, double y, double size, std::string_view words, std::string_view fill = ink,
            std::string_view anchor = "start", bool bold = false) {
    SvgCanvas::text(x, y, size, words, fill, anchor, std::string(bold ? svg_bold : "") + std::string(svg_rim));
  }
  void paragraph(std::string_view words, double size, std::string_view fill, std::size_t most_lines) {
    for (const std::string& each : wrap_text(words, size, width_ - 2 * margin, most_lines)) {
      text(margin, y_ + size, size, each, fill);
      y_ += size + 6;
    }
  }
  void section(std::string_view words) {
    y_ += 18;
    text(margin, y_ + large, large, fit_text(words, large * 1.08, width_ - 2 * margin), ink, "start", true);
    y_ += large + 10;
  }
  void legend(const std::vector<std::pair<std::string_view, std::string_view>>& entries) {
    double x = margin;
    for (const auto& entry : entries) {
      const double room = 18 + text_width(entry.second, small) + 14;
      if (x + room > width_ - margin && x > margin) x = margin, y_ += 18;
      rect(x, y_ + 1, 12, 12, entry.first);
      text(x + 18, y_ + small, small, entry.second, faint);
      x += room;
    }
    y_ += 22;
  }
  [[nodiscard]] double x_of(Picos time) const {
    return left_ + plot_ * static_cast<double>(time.count()) / static_cast<double>(span_.count());
  }
  [[nodiscard]] std::string title() const { return result_.title.empty() ? "Replay" : result_.title; }

  void heading();
  [[nodiscard]] std::string fit_verdict() const;
  [[nodiscard]] std::string speed_verdict() const;

  void timeline();
  void draw_row(const LaneRow& row);
  void step_boundaries(double top, double bottom, bool with_names);
  void time_axis(double top, double bottom);

  void memory();
  void memory_axis(double bottom, double scale, Bytes most);
  void memory_curve(double bottom, double scale, bool allocated);
  void memory_labels(double bottom, double scale, bool with_capacity);
  void peak_owners();

  void breakdown();
  void breakdown_labels(const std::vector<int>& shown, double total);

  const Trace& trace_;
  const Result& result_;
  std::size_t most_lanes_;
  int width_;
  double left_, plot_;
  Picos span_{};
  double y_ = margin;
};

// ---- heading

std::string TimelinePicture::fit_verdict() const {
  const MemoryResult& m = result_.memory;
  std::string words = verdict_heading(result_);
  if (!m.known || m.on_host) return words + ".";
  const std::string peak = bytes_text(std::max(m.peak_reserved, m.peak_allocated));
  const char* const at = m.out_of_memory ? "; peak without a limit " : "; peak ";
  words += m.capacity > Bytes(0) ? fmt::format("{}{} of {}", at, peak, bytes_text(m.capacity)) : at + peak;
  if (result_.fits() && result_.reserve.bytes() > Bytes(0))
    words += fmt::format(", {} of it kept free", bytes_text(result_.reserve.bytes()));
  return words + ".";
}

std::string TimelinePicture::speed_verdict() const {
  if (span_ <= Picos(0)) return "Nothing was replayed.";
  std::string words = fmt::format("Step time {}.", duration_text(result_.step_time));
  std::int64_t total = 0;
  for (const Picos part : result_.breakdown) total += part.count();
  const std::int64_t bound = result_.breakdown[static_cast<std::size_t>(result_.binding)].count();
  words += fmt::format(" Bound by {}", describe(result_.binding));
  words += total > 0
               ? fmt::format(" ({:.0f}% of the time).", 100.0 * static_cast<double>(bound) / static_cast<double>(total))
               : ".";
  if (result_.tokens_per_second > 0) words += fmt::format(" {:.0f} tokens/s.", result_.tokens_per_second);
  if (result_.mfu > 0) words += fmt::format(" MFU {:.1f}%.", 100 * result_.mfu);
  if (result_.bubble) words += fmt::format(" The GPU is idle for {:.1f}% of the time.", 100 * *result_.bubble);
  return words;
}

void TimelinePicture::heading() {
  for (const std::string& each : wrap_text(title(), 20 * 1.08, width_ - 2 * margin, 2)) {
    text(margin, y_ + 20, 20, each, ink, "start", true);
    y_ += 26;
  }
  y_ += 8;
  const Verdict verdict = result_.verdict();
  paragraph(fit_verdict(), large, verdict <= Verdict::tight ? ink : verdict == Verdict::unknown ? faint : red, 2);
  if (verdict == Verdict::does_not_fit) paragraph(result_.memory.explanation, normal, ink, 4);
  paragraph(speed_verdict(), large, ink, 3);
}

// ---- lanes

void TimelinePicture::timeline() {
  if (span_ <= Picos(0)) return;
  std::vector<LaneRow> rows = fold_lanes(trace_, result_, span_, static_cast<int>(plot_));
  section("What runs when");
  if (rows.empty()) return paragraph("No op was replayed.", normal, faint, 1);
  std::vector<Picos> busy;
  busy.reserve(rows.size());
  for (const LaneRow& row : rows) busy.push_back(row.busy);
  std::sort(busy.begin(), busy.end(), std::greater<>());
  std::string left_out;
  if (rows.size() > most_lanes_) {
    std::vector<LaneRow> kept;
    for (LaneRow& row : rows) {
      const bool drawn = kept.size() < most_lanes_ && row.busy >= busy[most_lanes_ - 1];
      if (drawn)
        kept.push_back(std::move(row));
      else
        left_out += (left_out.empty() ? "" : ", ") + row.name;
    }
    rows = std::move(kept);
  }
  std::array<bool, work_color_count> seen{};
  for (const LaneRow& row : rows) {
    for (const LaneBlock& block : row.blocks) seen[static_cast<std::size_t>(block.color)] = true;
    for (const LaneRun& run : row.runs) seen[static_cast<std::size_t>(run.color)] = true;
  }
  std::vector<std::pair<std::string_view, std::string_view>> entries;
  for (int i = 0; i < work_color_count; ++i)
    if (seen[static_cast<std::size_t>(i)])
      entries.emplace_back(fill_of(static_cast<WorkColor>(i)), describe(static_cast<WorkColor>(i)));
  legend(entries);
  const double names = y_, top = y_ + (result_.steps.empty() ? 0 : 16);
  y_ = top + 4;
  const double bottom = y_ + static_cast<double>(rows.size()) * (row_height + row_gap);
  time_axis(top, bottom);
  for (const LaneRow& row : rows) draw_row(row);
  step_boundaries(names, bottom, true);
  y_ = bottom + 22;
  if (!left_out.empty()) paragraph("Less busy, not drawn: " + left_out + ".", small, faint, 3);
}

void TimelinePicture::draw_row(const LaneRow& row) {
  put("<g><title>{}</title>\n", svg_escape(row.name));
  text(left_ - 8, y_ + 15, small, fit_text(row.name, small, label_room - 8), ink, "end");
  for (int color = 0; color < work_color_count; ++color)
    for (int level = 0; level < busy_levels; ++level) {
      std::string path;
      for (const LaneRun& run : row.runs)
        if (static_cast<int>(run.color) == color && run.level == level)
          fmt::format_to(std::back_inserter(path), "M{:.0f} {:.0f}h{}v{:.0f}h-{}z", left_ + run.first, y_, run.count,
                         row_height, run.count);
      if (!path.empty())
        put("<path fill=\"{}\" fill-opacity=\"{:.2f}\" d=\"{}\"/>\n", fill_of(static_cast<WorkColor>(color)),
            0.4 + 0.2 * level, path);
    }
  for (const LaneBlock& block : row.blocks) {
    const double gap = block.width >= 4 ? 0.6 : 0;  // neighbours stay apart
    put("<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\"", left_ + block.x, y_,
        block.width - gap, row_height, fill_of(block.color));
    if (block.width < 3) {
      put("/>\n");
      continue;
    }
    const std::size_t op = index_of(block.op);
    put("><title>{}, {}</title></rect>\n", svg_escape(fit_text(trace_.strings.text(trace_.ops.name[op]), 1, 48)),
        duration_text(result_.op_end[op] - result_.op_start[op]));
  }
  put("</g>\n");
  y_ += row_height + row_gap;
}

// A line where each step begins, and at the end of the last; names where they have room. At most one line per 3 pixels.
void TimelinePicture::step_boundaries(double top, double bottom, bool with_names) {
  double drawn = -10, named = left_;
  for (std::size_t i = 0; i < result_.steps.size(); ++i) {
    const StepResult& step = result_.steps[i];
    if (step.begin < Picos(0) || step.begin >= span_ || step.end < step.begin) continue;
    const double x = x_of(step.begin), end = x_of(std::min(step.end, span_));
    for (const double at : {x, end})
      if (at >= drawn + 3)
        line(at, top + 2, at, bottom, ink, " stroke-dasharray=\"4 3\" stroke-width=\"1\""), drawn = at;
    const double start = std::max(x + 4, named);
    if (!with_names || step.name.empty() || end - start < text_width(step.name, small)) continue;
    text(start, top + small, small, step.name, ink);
    named = start + text_width(step.name, small) + 6;
  }
}

void TimelinePicture::time_axis(double top, double bottom) {
  for (const Tick& tick : time_ticks(span_, static_cast<int>(plot_ / 110))) {
    const double x = x_of(Picos(tick.at)), half = text_width(tick.label, small) / 2;
    line(x, top, x, bottom, grid);
    const bool cut = x + half > width_ - 2;
    text(cut ? width_ - 2 : x, bottom + 14, small, tick.label, faint, cut ? "end" : "middle");
  }
  line(left_, bottom, left_ + plot_, bottom, faint);
}

// ---- memory

void TimelinePicture::memory() {
  const MemoryResult& m = result_.memory;
  if (span_ <= Picos(0) || !m.known || m.timeline.empty()) return;
  if (m.on_host)
    section("host memory");
  else
    section(m.allocator.empty() ? "GPU memory" : fmt::format("GPU memory ({})", m.allocator));
  const Bytes used = std::max({m.peak_allocated, m.peak_reserved, Bytes(1)});
  const bool with_capacity = m.capacity > Bytes(0) && m.capacity / 8 <= used;
  std::vector<std::pair<std::string_view, std::string_view>> entries = {{allocated_fill, "allocated"},
                                                                        {reserved_line, "reserved by the allocator"}};
  const std::string far = fmt::format("capacity {}, far above", bytes_text(m.capacity));
  if (with_capacity)
    entries.emplace_back(red, "capacity");
  else if (m.capacity > Bytes(0))
    entries.emplace_back(red, far);
  legend(entries);
  const double top = y_, bottom = y_ + plot_height;
  const Bytes most = with_capacity ? std::max(used, m.capacity) : used;
  const double scale = (plot_height - head_room) / static_cast<double>(most.count());
  time_axis(top, bottom);
  memory_axis(bottom, scale, most);
  memory_curve(bottom, scale, true);
  memory_curve(bottom, scale, false);
  step_boundaries(top, bottom, false);
  memory_labels(bottom, scale, with_capacity);
  y_ = bottom + 24;
  peak_owners();
}

void TimelinePicture::memory_axis(double bottom, double scale, Bytes most) {
  for (const Tick& tick : byte_ticks(most, 4)) {
    const double y = bottom - scale * static_cast<double>(tick.at);
    line(left_, y, left_ + plot_, y, grid);
    text(left_ - 8, y + 4, small, tick.label, faint, "end");
  }
}

// Allocated as an area, reserved as a line; in each pixel column the highest value that held within it.
void TimelinePicture::memory_curve(double bottom, double scale, bool allocated) {
  const auto columns = static_cast<std::size_t>(plot_);
  std::vector<std::int64_t> highest(columns, 0);
  std::int64_t value = 0;
  std::size_t column = 0;
  for (const MemoryPoint& point : result_.memory.timeline) {
    if (point.time > span_) break;
    const double x = std::max(x_of(point.time) - left_, 0.0);
    for (const std::size_t at = std::min(static_cast<std::size_t>(x), columns - 1); column < at;) {
      highest[column] = std::max(highest[column], value);
      ++column;
      highest[column] = value;
    }
    value = (allocated ? point.allocated : point.reserved).count();
    highest[column] = std::max(highest[column], value);
  }
  for (++column; column < columns; ++column) highest[column] = value;
  const auto y = [&](std::size_t at) { return bottom - scale * static_cast<double>(highest[at]); };
  std::string path = allocated ? fmt::format("M{:.0f} {:.0f}V{:.1f}", left_, bottom, y(0))
                               : fmt::format("M{:.0f} {:.1f}", left_, y(0));
  for (std::size_t at = 1; at < columns; ++at)
    if (highest[at] != highest[at - 1])
      fmt::format_to(std::back_inserter(path), "H{:.0f}V{:.1f}", left_ + static_cast<double>(at), y(at));
  fmt::format_to(std::back_inserter(path), "H{:.0f}", left_ + static_cast<double>(columns));
  if (allocated)
    put("<path d=\"{}V{:.0f}z\" fill=\"{}\" fill-opacity=\"0.55\"/>\n", path, bottom, allocated_fill);
  else
    put("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path, reserved_line);
}

void TimelinePicture::memory_labels(double bottom, double scale, bool with_capacity) {
  const MemoryResult& m = result_.memory;
  const bool peak_shown = m.peak_time >= Picos(0) && m.peak_time <= span_;
  const std::string peak = fmt::format("peak {}", bytes_text(m.peak_allocated));
  const std::string capacity = fmt::format("capacity {}", bytes_text(m.capacity));
  const double width = text_width(peak, small), x = peak_shown ? x_of(m.peak_time) : left_;
  const double y = bottom - scale * static_cast<double>(m.peak_allocated.count());
  const double left = std::clamp(x - width / 2, left_ + 2, left_ + plot_ - width - 2);
  if (with_capacity) {
    const double line_y = bottom - scale * static_cast<double>(m.capacity.count()), room = text_width(capacity, small);
    line(left_, line_y, left_ + plot_, line_y, red, " stroke-width=\"1.5\"");
    // Above its line, below it where the reserved curve runs just above; at the right end unless the peak is there.
    const double over = scale * static_cast<double>((m.peak_reserved - m.capacity).count());
    const double label_y = over > 0 && over < 20 ? line_y + 14 : line_y - 5;
    const LaneBox right_end{left_ + plot_ - room - 6, label_y - small, left_ + plot_, label_y + 3};
    const bool taken = peak_shown && LaneBox{left, y - 24, left + width, y + 24}.meets(right_end);
    text(taken ? left_ + 4 : left_ + plot_ - 4, label_y, small, capacity, red, taken ? "start" : "end", true);
    const bool on_line =
        LaneBox{left, y - 22, left + width, y - 6}.meets({left_, line_y - 1, left_ + plot_, line_y + 1});
    if (peak_shown) text(left, on_line ? y + 20 : y - 9, small, peak);
  } else if (peak_shown) {
    text(left, y - 9, small, peak);
  }
  if (peak_shown) put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\" stroke=\"#FFFFFF\"/>\n", x, y, ink);
}

void TimelinePicture::peak_owners() {
  constexpr std::size_t most = 6;
  const std::vector<PeakOwner>& owners = result_.memory.owners;
  std::string words;
  for (std::size_t i = 0; i < std::min(most, owners.size()); ++i)
    words += fmt::format("{}{} {}", i == 0 ? "Held at the peak: " : ", ", owners[i].name, bytes_text(owners[i].bytes));
  if (owners.size() > most) words += fmt::format(", and {} more", owners.size() - most);
  if (!words.empty()) paragraph(words + ".", small, faint, 3);
}

// ---- breakdown

void TimelinePicture::breakdown() {
  std::vector<int> shown;
  double total = 0;
  for (int i = 0; i < binding_count; ++i) {
    const Picos part = result_.breakdown[static_cast<std::size_t>(i)];
    if (part <= Picos(0)) continue;
    shown.push_back(i);
    total += static_cast<double>(part.count());
  }
  if (shown.empty()) return;
  section("What the time is made of");
  paragraph("The chain of waits that ends with the last work, by what each wait is for.", small, faint, 2);
  y_ += 2;
  double x = margin;
  for (const int i : shown) {
    const double part = static_cast<double>(result_.breakdown[static_cast<std::size_t>(i)].count()) / total;
    const double width = part * (width_ - 2 * margin);
    rect(x, y_, width, 28, binding_fill[static_cast<std::size_t>(i)]);
    const std::string percent = fmt::format("{:.1f}%", 100 * part);
    if (text_width(percent, small) + 10 <= width) text(x + width / 2, y_ + 18, small, percent, ink, "middle", true);
    x += width;
  }
  y_ += 40;
  breakdown_labels(shown, total);
}

void TimelinePicture::breakdown_labels(const std::vector<int>& shown, double total) {
  const int columns = width_ >= 1000 ? 2 : 1;
  const double room = (width_ - 2 * margin) / columns;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    const auto i = static_cast<std::size_t>(shown[k]);
    const double x = margin + room * static_cast<double>(static_cast<int>(k) % columns);
    const double part = static_cast<double>(result_.breakdown[i].count()) / total;
    rect(x, y_ + 1, 12, 12, binding_fill[i]);
    const std::string words = fmt::format("{:.1f}%, {}: {}", 100 * part, duration_text(result_.breakdown[i]),
                                          describe(static_cast<Binding>(i)));
    text(x + 18, y_ + small, small, fit_text(words, small, room - 30));
    if (static_cast<int>(k) % columns == columns - 1 || k + 1 == shown.size()) y_ += 20;
  }
}

}  // namespace

std::string timeline_svg(const Trace& trace, const Result& result, const SvgOptions& options) {
  return TimelinePicture(trace, result, options).draw();
}

}  // namespace spillway::reports
