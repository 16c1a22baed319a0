#include "cli/output/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/csv_cell.h"
#include "base/input_error.h"
#include "base/markdown_text.h"
#include "base/number_text.h"
#include "base/shortened.h"
#include "base/terminal_text.h"
#include "traces/trace.h"

namespace spillway::cli {
namespace {

constexpr std::size_t longest_cell = 500;  // of a table for people; CSV and JSON have all of it

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_not_of("0123456789+-.,e%") == std::string_view::npos;
}

// Characters, not bytes, of UTF-8.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string printable(std::string_view text) {
  std::string line = terminal_text(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string csv_line(const std::vector<std::string>& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(row[i]);
  return line + "\n";
}

}  // namespace

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

void Table::add(std::vector<std::string> row) {
  SPILLWAY_ASSERT(row.size() == headings_.size());
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  // Every row is as wide as the widest: one long value would be paid for in each.
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& row : rows)
    for (std::string& cell : row) cell = shortened(printable(cell), longest_cell);
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    std::size_t widest = width(headings_[i]);
    for (const auto& row : rows) widest = std::max(widest, width(row[i]));
    widths.push_back(widest);
    right.push_back(std::all_of(rows.begin(), rows.end(),
                                [&](const auto& row) { return is_number(row[i]) || row[i] == "-" || row[i].empty(); }));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      cells += (i == 0 ? "" : "  ") + (right[i] ? padding + row[i] : row[i] + padding);
    }
    cells.erase(cells.find_last_not_of(' ') + 1);
    out += cells + "\n";
  };
  line(headings_);
  for (const auto& row : rows) line(row);
  return out;
}

std::string Table::csv() const {
  std::string out = csv_line(headings_);
  for (const auto& row : rows_) out += csv_line(row);
  return out;
}

// GitHub's tables.
std::string Table::markdown() const {
  const auto line = [](const std::vector<std::string>& row) {
    std::string out = "|";
    for (const std::string& cell : row) out += " " + markdown_text(terminal_text(cell)) + " |";
    return out + "\n";
  };
  std::string out = line(headings_) + "|";
  for (std::size_t i = 0; i < headings_.size(); ++i) out += "---|";
  out += "\n";
  for (const auto& row : rows_) out += line(row);
  return out;
}

void print(const std::string& text) {
  static const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const std::string shown = is_terminal ? terminal_text(text) : "";
  const std::string& written = is_terminal ? shown : text;
  std::fwrite(written.data(), 1, written.size(), stdout);
}

void print(const Context& context, const Table& table) {
  print(context.csv() ? table.csv() : context.markdown() ? table.markdown() : table.text());
}

void print_json(const nlohmann::ordered_json& document) {
  print(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

nlohmann::ordered_json json_document(const std::string& schema) { return {{"schema", schema}, {"version", 1}}; }

std::string verdict_note(Verdict verdict, std::string_view before, std::string_view after) {
  if (verdict == Verdict::fits) return "";
  return fmt::format("{}{}{}{}", before, verdict == Verdict::unknown ? "fit " : "", to_string(verdict), after);
}

void put_verdict(nlohmann::ordered_json& document, Verdict verdict) {
  document["fits"] = fits_json(verdict);
  document["verdict"] = to_string(verdict);
}

std::string for_people(Bytes bytes) {
  if (bytes < Bytes(0)) return "-";
  const InUnit number = in_byte_unit(bytes);
  if (number.is_smallest) return fmt::format("{} B", bytes.count());
  return fmt::format("{} B ({:.1f} {})", bytes.count(), number.amount, number.unit);
}

std::string for_people(Picos time) {
  if (time == unknown_time) return "-";
  return precise_duration_text(time);
}

std::string gib(Bytes bytes, int decimals) { return fmt::format("{:.{}f}", in_gib(bytes), decimals); }

nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json number_or_null(std::optional<double> value) {
  return value ? number_or_null(*value) : nlohmann::ordered_json();
}

std::int64_t whole_nanoseconds(Picos time) {
  const std::int64_t count = time.count();
  return (count + (count < 0 ? -500 : 500)) / 1000;
}

}  // namespace spillway::cli
