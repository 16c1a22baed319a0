// Areas for shares of a whole: squarified treemaps (Bruls, Huizing, van Wijk: Squarified Treemaps, Data Visualization
// 2000, section 3). For pictures in files and in the window.
#pragma once

#include <vector>

namespace spillway::reports {

struct TreemapBox {
  double x = 0, y = 0, w = 0, h = 0;
};

// values: > 0, largest first. As many boxes, which fill `box` without overlapping; rows along the shorter side grow
// while that makes them squarer. O(values).
std::vector<TreemapBox> squarified(const std::vector<double>& values, TreemapBox box);

}  // namespace spillway::reports
