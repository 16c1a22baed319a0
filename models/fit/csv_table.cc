#include "models/fit/csv_table.h"

#include <cstdlib>
#include <limits>

#include "base/input_error.h"
#include "base/read_file.h"

namespace spillway::models::fit {
namespace {

constexpr std::uint64_t most_bytes = 1U << 30;

// Cells of the next record of `text` from `at`, which is moved behind it.
std::vector<std::string> record(std::string_view text, std::size_t& at) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c == '\n' && !quoted) {
      ++at;
      break;
    } else if (c != '\r') {
      cells.back().push_back(c);
    }
  }
  return cells;
}

}  // namespace

CsvTable CsvTable::read(const std::string& path) {
  const std::string text = read_file(path, most_bytes);
  CsvTable table;
  table.path_ = path;
  for (std::size_t at = 0; at < text.size();) {
    std::vector<std::string> cells = record(text, at);
    if (table.columns_ == 0) table.columns_ = cells.size();
    if (cells.size() != table.columns_) continue;  // a blank or cut line
    for (std::string& cell : cells) table.cells_.push_back(std::move(cell));
  }
  return table;
}

bool CsvTable::has(std::string_view name) const {
  for (std::size_t i = 0; i < columns_; ++i)
    if (cells_[i] == name) return true;
  return false;
}

std::size_t CsvTable::column(std::string_view name) const {
  for (std::size_t i = 0; i < columns_; ++i)
    if (cells_[i] == name) return i;
  throw InputError(path_, "header", "no column " + std::string(name), "give the folder of the tables as published");
}

double CsvTable::number(std::size_t row, std::size_t column) const {
  const std::string& cell = text(row, column);
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  return end == cell.c_str() ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace spillway::models::fit
