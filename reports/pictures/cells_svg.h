// A small map: rows of cells, each with a value above it, two lines in it and a colour that says how good it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::reports {

enum class CellMark : std::uint8_t { good, costly, little, none };

struct MapCell {
  std::string value;          // what it is of, above it
  std::string first, second;  // in it
  CellMark mark = CellMark::none;
  bool is_own = false;  // framed: where the scenario stands
};
struct MapRow {
  std::string name, note;  // note: below the name
  std::vector<MapCell> cells;
};

// `legend`: what the marks mean, in their order. O(cells).
std::string cells_svg(const std::string& title, const std::vector<MapRow>& rows,
                      const std::vector<std::string>& legend);

}  // namespace spillway::reports
