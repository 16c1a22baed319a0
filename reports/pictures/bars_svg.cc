#include "reports/pictures/bars_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/axis.h"
#include "base/input_error.h"
#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"

namespace spillway::reports {
namespace {

constexpr double bars_head = 76, bar_step = 22, bar_height = 13, names_room = 260, notes_room = 84, bars_plot = 190,
                 bars_gap = 78, bars_foot = 30;
constexpr std::string_view bad = "#B3261E";

class BarsPicture : private SvgCanvas {
 public:
  BarsPicture(const std::vector<BarRow>& rows, const std::vector<BarColumn>& columns)
      : rows_(rows), columns_(columns) {}

  std::string draw(const std::string& title) {
    const double width =
        2 * margin + names_room + notes_room + static_cast<double>(columns_.size()) * (bars_plot + bars_gap);
    bottom_ = margin + bars_head + static_cast<double>(rows_.size()) * bar_step;
    text(margin, margin + 8, 17, fit_text(title, 17, width - 2 * margin));
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double y = middle(r);
      if (r % 2 == 1) rect(margin, y - bar_step / 2, width - 2 * margin, bar_step, "#F7F7F7");
      text(margin + 4, y + 4, 12, fit_text(rows_[r].name, 12, names_room - 8));
      text(margin + names_room, y + 4, 12, fit_text(rows_[r].note, 12, notes_room - 4),
           rows_[r].is_bad ? bad : svg_faint);
    }
    for (std::size_t c = 0; c < columns_.size(); ++c)
      column(columns_[c], margin + names_room + notes_room + static_cast<double>(c) * (bars_plot + bars_gap),
             svg_colours[c % 8]);
    return document(width, bottom_ + bars_foot, title);
  }

 private:
  // What no bar shows is none.
  static std::string shown(double value, double most) {
    return value < most / 2000 ? "0" : fmt::format("{:.4g}", value);
  }
  static double middle(std::size_t row) { return margin + bars_head + (static_cast<double>(row) + 0.5) * bar_step; }

  void column(const BarColumn& of, double left, std::string_view colour) {
    double most = of.limit.value_or(0);
    for (const std::optional<double>& value : of.values) most = std::max(most, value.value_or(0));
    const double scale = most > 0 ? bars_plot / most : 0;
    text(left, margin + 40, 13, of.title, svg_ink, "start", svg_bold);
    text(left, margin + 56, 11, of.unit, svg_faint);
    line_down(left, svg_grid);
    for (std::size_t r = 0; r < of.values.size(); ++r) {
      const double y = middle(r);
      if (!of.values[r]) {
        text(left + 4, y + 4, 11, "-", svg_faint);
        continue;
      }
      const double length = *of.values[r] * scale;
      rect(left, y - bar_height / 2, std::max(0.5, length), bar_height, colour);
      text(left + length + 4, y + 4, 11, shown(*of.values[r], most), svg_ink, "start", svg_rim);
    }
    if (!of.limit) return;
    const double at = left + *of.limit * scale;
    SvgCanvas::line(at, margin + bars_head - 4, at, bottom_, bad, " stroke-dasharray=\"4 3\"");
    text(at, margin + bars_head - 8, 10, of.limit_name, bad, "middle");
  }
  void line_down(double x, std::string_view colour) { SvgCanvas::line(x, margin + bars_head, x, bottom_, colour); }

  const std::vector<BarRow>& rows_;
  const std::vector<BarColumn>& columns_;
  double bottom_ = 0;
};

}  // namespace

std::string bars_svg(const std::string& title, const std::vector<BarRow>& rows, const std::vector<BarColumn>& columns) {
  for (const BarColumn& column : columns) SPILLWAY_ASSERT(column.values.size() == rows.size());
  return BarsPicture(rows, columns).draw(title);
}

}  // namespace spillway::reports
