#include "reports/pictures/treemap_svg.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/svg_canvas.h"
#include "base/svg_text.h"

namespace spillway::reports {
namespace {

constexpr double width = 960, height = 560, margin = 24, head = 56, group_head = 18;

struct Box {
  double x = 0, y = 0, w = 0, h = 0;
};

double worst(double row, double smallest, double largest, double side) {
  return std::max(side * side * largest / (row * row), row * row / (side * side * smallest));
}

// Areas, largest first, into a box; rows along its shorter side grow while that makes them squarer.
std::vector<Box> squarified(const std::vector<double>& values, Box box) {
  std::vector<Box> boxes;
  double total = 0;
  for (const double value : values) total += value;
  if (total <= 0) return std::vector<Box>(values.size());
  const double scale = std::max(0.0, box.w) * std::max(0.0, box.h) / total;
  for (std::size_t begin = 0; begin < values.size();) {
    const double side = std::max(1e-9, std::min(box.w, box.h));
    double row = values[begin] * scale;
    std::size_t end = begin + 1;
    while (end < values.size()) {
      const double next = values[end] * scale, first = values[begin] * scale;
      if (worst(row + next, next, first, side) > worst(row, values[end - 1] * scale, first, side)) break;
      row += next;
      ++end;
    }
    const double thick = row / side;
    const bool upright = box.w >= box.h;
    double at = upright ? box.y : box.x;
    for (std::size_t i = begin; i < end; ++i) {
      const double length = thick > 0 ? values[i] * scale / thick : 0;
      boxes.push_back(upright ? Box{box.x, at, thick, length} : Box{at, box.y, length, thick});
      at += length;
    }
    if (upright) {
      box.x += thick;
      box.w -= thick;
    } else {
      box.y += thick;
      box.h -= thick;
    }
    begin = end;
  }
  return boxes;
}

class Picture : private SvgCanvas {
 public:
  std::string draw(const std::string& title, const std::string& subtitle, const std::vector<TreemapItem>& items) {
    text(margin, margin + 8, 17, fit_text(title, 17, width - 2 * margin));
    text(margin, margin + 26, 12, fit_text(subtitle, 12, width - 2 * margin), svg_faint);
    std::map<std::string, std::vector<const TreemapItem*>> by_name;
    for (const TreemapItem& item : items) by_name[item.path.front()].push_back(&item);
    std::vector<std::pair<double, const std::vector<const TreemapItem*>*>> groups;
    for (auto& [name, members] : by_name) {
      double sum = 0;
      for (const TreemapItem* member : members) sum += member->value;
      std::stable_sort(members.begin(), members.end(), [](auto a, auto b) { return a->value > b->value; });
      groups.emplace_back(sum, &members);
    }
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<double> sums;
    for (const auto& [sum, members] : groups) sums.push_back(sum);
    const std::vector<Box> boxes =
        squarified(sums, {margin, margin + head, width - 2 * margin, height - head - 2 * margin});
    for (std::size_t g = 0; g < groups.size(); ++g) group(boxes[g], *groups[g].second, svg_colours[g % 8]);
    return document(width, height, title);
  }

 private:
  void group(Box box, const std::vector<const TreemapItem*>& members, std::string_view colour) {
    rect(box.x, box.y, box.w, box.h, colour);
    const bool named = box.h > 2 * group_head && box.w > 60;
    if (named) text(box.x + 4, box.y + 13, 12, fit_text(members.front()->path.front(), 12, box.w - 8), "#FFFFFF");
    const double top = named ? group_head : 1;
    std::vector<double> values;
    for (const TreemapItem* member : members) values.push_back(member->value);
    const std::vector<Box> boxes = squarified(values, {box.x + 1, box.y + top, box.w - 2, box.h - top - 1});
    for (std::size_t i = 0; i < members.size(); ++i) item(boxes[i], *members[i]);
  }
  void item(Box box, const TreemapItem& item) {
    if (box.w < 1 || box.h < 1) return;
    rect(box.x + 0.5, box.y + 0.5, std::max(0.2, box.w - 1), std::max(0.2, box.h - 1), "#F7F7F7");
    if (box.w < 40 || box.h < 16) return;
    text(box.x + 4, box.y + 13, 11, fit_text(item.path.back(), 11, box.w - 8));
    if (box.h > 30) text(box.x + 4, box.y + 27, 11, fit_text(item.text, 11, box.w - 8), svg_faint);
  }
};

}  // namespace

std::string treemap_svg(const std::string& title, const std::string& subtitle, const std::vector<TreemapItem>& items) {
  return Picture().draw(title, subtitle, items);
}

}  // namespace spillway::reports
