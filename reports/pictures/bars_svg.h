// Figures of several things side by side: a row for each, a column of bars for each figure, on one scale per column.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace spillway::reports {

struct BarColumn {
  std::string title, unit;
  std::vector<std::optional<double>> values;  // by row, >= 0; none: not known
  std::optional<double> limit;                // drawn through all rows, with its name
  std::string limit_name;
};
struct BarRow {
  std::string name, note;  // note: a word behind the name
  bool is_bad = false;     // the note says no
};

// `title` heads the picture. Precondition: every column has a value for each row. O(rows x columns).
std::string bars_svg(const std::string& title, const std::vector<BarRow>& rows, const std::vector<BarColumn>& columns);

}  // namespace spillway::reports
