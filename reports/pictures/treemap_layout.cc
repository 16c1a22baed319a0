#include "reports/pictures/treemap_layout.h"

#include <algorithm>

namespace spillway::reports {
namespace {

// Of a row's boxes, how far the worst is from a square.
double worst(double row, double smallest, double largest, double side) {
  return std::max(side * side * largest / (row * row), row * row / (side * side * smallest));
}

}  // namespace

std::vector<TreemapBox> squarified(const std::vector<double>& values, TreemapBox box) {
  std::vector<TreemapBox> boxes;
  double total = 0;
  for (const double value : values) total += value;
  if (total <= 0) return std::vector<TreemapBox>(values.size());
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
      boxes.push_back(upright ? TreemapBox{box.x, at, thick, length} : TreemapBox{at, box.y, length, thick});
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

}  // namespace spillway::reports
