// Comma-separated values with a header line; "quoted, fields" and doubled quotes as in RFC 4180.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::traces {

class CsvRows {
 public:
  // Throws InputError when there is no header or it lacks one of `columns`. `text` must outlive the rows.
  CsvRows(std::string_view text, const std::string& file, std::initializer_list<std::string_view> columns);

  // Reads the next row that is not empty; false at the end. A quote that never ends takes the rest.
  bool next();
  // Field of the present row; empty when the row is too short.
  [[nodiscard]] std::string_view field(std::string_view column) const;
  // Whole part of a decimal number, rounded down; nothing for anything else or beyond +-9e15.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view column) const;
  [[nodiscard]] std::uint64_t line() const { return line_; }

 private:
  bool split();
  std::string_view rest_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string> fields_;
  std::uint64_t line_ = 0;
};

}  // namespace spillway::traces
