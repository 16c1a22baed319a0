// A measured table as columns of text: CSV with a header line, plain or compressed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::models::fit {

class CsvTable {
 public:
  // Quoted cells may hold commas and line ends. Throws InputError when the file can't be read.
  static CsvTable read(const std::string& path);

  [[nodiscard]] std::size_t rows() const { return columns_ == 0 ? 0 : cells_.size() / columns_ - 1; }
  // Throws InputError naming the file when there is no such column.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::size_t row, std::size_t column) const {
    return cells_[(row + 1) * columns_ + column];
  }
  // NaN when the cell is not a number ("inf" is one).
  [[nodiscard]] double number(std::size_t row, std::size_t column) const;

 private:
  std::string path_;
  std::size_t columns_ = 0;
  std::vector<std::string> cells_;  // header first
};

}  // namespace spillway::models::fit
