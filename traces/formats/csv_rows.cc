#include "traces/formats/csv_rows.h"

#include <charconv>

#include "base/input_error.h"

namespace spillway::traces {

CsvRows::CsvRows(std::string_view text, const std::string& file, std::initializer_list<std::string_view> columns)
    : rest_(text) {
  if (split())
    for (std::size_t i = 0; i < fields_.size(); ++i) columns_.emplace(fields_[i], i);
  for (const std::string_view wanted : columns)
    if (!columns_.contains(wanted))
      throw InputError(file, "line 1", "no column \"" + std::string(wanted) + "\"", "give a table with a header line");
}

bool CsvRows::split() {
  if (rest_.empty()) return false;
  ++line_;
  fields_.assign(1, "");
  bool quoted = false;
  std::size_t i = 0;
  for (; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < rest_.size() && rest_[i + 1] == '"';
      if (doubled)
        fields_.back() += rest_[++i];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields_.emplace_back();
    } else if (c == '\n' && !quoted) {
      break;
    } else if (c != '\r') {
      fields_.back() += c;
    }
  }
  rest_.remove_prefix(i < rest_.size() ? i + 1 : i);
  return true;
}

bool CsvRows::next() {
  while (split())
    if (fields_.size() > 1 || !fields_[0].empty()) return true;
  return false;
}

std::string_view CsvRows::field(std::string_view column) const {
  const auto found = columns_.find(column);
  return found == columns_.end() || found->second >= fields_.size() ? std::string_view() : fields_[found->second];
}

std::optional<std::int64_t> CsvRows::integer(std::string_view column) const {
  const std::string_view text = field(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  if (!(value > -9e15 && value < 9e15)) return {};
  return static_cast<std::int64_t>(value);
}

}  // namespace spillway::traces
