// Predicted against measured, as a picture: panels of figures that share an axis, both axes logarithmic, a band of +-10
// % around equality, one colour for each source.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::reports {

struct ScatterPoint {
  double measured = 0, predicted = 0;  // in the panel's unit
  bool is_fit = false;                 // used in a fit: drawn hollow
  std::size_t source = 0;              // its colour
};
struct ScatterLine {  // of the legend
  std::size_t source = 0;
  bool is_fit = false;
  std::string words;
};
struct ScatterPanel {
  std::string title, unit;
  std::vector<ScatterPoint> points;
  std::vector<ScatterLine> legend;
};

// Points that no logarithm shows (0 or less) are left out, as are panels without points. `title` heads the picture.
// O(points).
std::string scatter_svg(const std::string& title, std::vector<ScatterPanel> panels);

}  // namespace spillway::reports
