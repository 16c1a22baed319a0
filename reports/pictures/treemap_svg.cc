#include "reports/pictures/treemap_svg.h"

#include <algorithm>
#include <map>

#include "base/svg_canvas.h"
#include "base/svg_text.h"
#include "reports/pictures/picture_style.h"
#include "reports/pictures/treemap_layout.h"

namespace spillway::reports {
namespace {

constexpr double width = 960, height = 560, treemap_head = 56, group_head = 18;

using Box = TreemapBox;

class TreemapPicture : private SvgCanvas {
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
        squarified(sums, {margin, margin + treemap_head, width - 2 * margin, height - treemap_head - 2 * margin});
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
  return TreemapPicture().draw(title, subtitle, items);
}

}  // namespace spillway::reports
