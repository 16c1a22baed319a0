// CSV files of published figures, read from beside the source tree.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace spillway::planners {

// Quoted fields; no quotes within them.
inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

struct CsvRow {
  std::map<std::string, std::string> cells;
  [[nodiscard]] const std::string& text(const std::string& column) const { return cells.at(column); }
  [[nodiscard]] double number(const std::string& column) const { return std::stod(cells.at(column)); }
  [[nodiscard]] std::int64_t count(const std::string& column) const { return std::stoll(cells.at(column)); }
  [[nodiscard]] std::vector<double> numbers(const std::string& column) const {
    std::istringstream in(cells.at(column));
    std::vector<double> out;
    for (double value = 0; in >> value;) out.push_back(value);
    return out;
  }
};

inline std::vector<CsvRow> csv_rows(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::vector<CsvRow> out;
  std::getline(in, line);
  const std::vector<std::string> names = csv_fields(line);
  while (std::getline(in, line)) {
    const std::vector<std::string> values = csv_fields(line);
    CsvRow& row = out.emplace_back();
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) row.cells[names[i]] = values[i];
  }
  return out;
}

inline std::filesystem::path shared_data(const std::string& file) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::filesystem::path(root == nullptr ? "." : root) / "../shared/data" / file;
}

}  // namespace spillway::planners
