// Shares of a whole as rectangles of like areas, nested by their paths: squarified treemaps (Bruls, Huizing, van Wijk:
// Squarified Treemaps, Data Visualization 2000, section 3); groups are laid out within their parent's rectangle.
#pragma once

#include <string>
#include <vector>

namespace spillway::reports {

struct TreemapItem {
  std::vector<std::string> path;  // outermost first; the last is its own name. Not empty
  double value = 0;               // > 0
  std::string text;               // of the value: "1.50 GiB"
};

// Groups by the first part of the path. Items too small to see are drawn without words. O(items log items).
std::string treemap_svg(const std::string& title, const std::string& subtitle, const std::vector<TreemapItem>& items);

}  // namespace spillway::reports
