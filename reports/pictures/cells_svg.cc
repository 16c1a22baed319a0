#include "reports/pictures/cells_svg.h"

#include <algorithm>
#include <array>

#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"

namespace spillway::reports {
namespace {

constexpr double cells_head = 66, cell_step = 58, cell_width = 104, cell_height = 36, row_names_room = 190;
// Of CellMark, light enough for black words.
constexpr std::array<std::string_view, 4> mark_fills = {"#A8DCC9", "#F6D79A", "#DCE6F2", "#EFEFEF"};

class CellsPicture : private SvgCanvas {
 public:
  std::string draw(const std::string& title, const std::vector<MapRow>& rows, const std::vector<std::string>& legend) {
    std::size_t most = 1;
    for (const MapRow& row : rows) most = std::max(most, row.cells.size());
    const double width = std::max(2 * margin + row_names_room + static_cast<double>(most) * cell_width, 620.0);
    text(margin, margin + 8, 17, fit_text(title, 17, width - 2 * margin));
    key(legend, width);
    double top = margin + cells_head;
    for (const MapRow& row : rows) {
      text(margin, top + 16, 13, fit_text(row.name, 13, row_names_room - 8), svg_ink, "start", svg_bold);
      text(margin, top + 32, 11, fit_text(row.note, 11, row_names_room - 8), svg_faint);
      double left = margin + row_names_room;
      for (const MapCell& cell : row.cells) {
        one(cell, left, top);
        left += cell_width;
      }
      top += cell_step;
    }
    return document(width, top + margin, title);
  }

 private:
  void one(const MapCell& cell, double left, double top) {
    const double middle = left + (cell_width - 4) / 2;
    text(middle, top - 3, 11, fit_text(cell.value, 11, cell_width - 6), svg_faint, "middle");
    rect(left, top, cell_width - 4, cell_height, mark_fills[static_cast<std::size_t>(cell.mark)],
         cell.is_own ? " stroke=\"#1A1A1A\" stroke-width=\"1.5\"" : "");
    text(middle, top + 15, 11, fit_text(cell.first, 11, cell_width - 8), svg_ink, "middle");
    text(middle, top + 29, 11, fit_text(cell.second, 11, cell_width - 8), svg_ink, "middle");
  }

  void key(const std::vector<std::string>& legend, double width) {
    double left = margin;
    for (std::size_t i = 0; i < std::min(legend.size(), mark_fills.size()); ++i) {
      rect(left, margin + 22, 11, 11, mark_fills[i]);
      const std::string words = fit_text(legend[i], 11, width - margin - left - 16);
      text(left + 15, margin + 32, 11, words, svg_faint);
      left += 34 + text_width(words, 11);
    }
  }
};

}  // namespace

std::string cells_svg(const std::string& title, const std::vector<MapRow>& rows,
                      const std::vector<std::string>& legend) {
  return CellsPicture().draw(title, rows, legend);
}

}  // namespace spillway::reports
