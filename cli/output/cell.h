// Cells of a table in two forms: as people read a figure, and as programs do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/options/context.h"

namespace spillway::cli {

struct Cell {
  std::string people, program;  // "2.09 s", "2.0903"

  Cell(std::string for_people, std::string for_program)
      : people(std::move(for_people)), program(std::move(for_program)) {}
  explicit Cell(const std::string& both) : people(both), program(both) {}
};

// The reader of the context's format is shown these.
inline std::vector<std::string> shown_cells(const Context& context, std::vector<Cell> cells) {
  std::vector<std::string> shown;
  for (Cell& cell : cells) shown.push_back(std::move(context.rows_only() ? cell.program : cell.people));
  return shown;
}

}  // namespace spillway::cli
