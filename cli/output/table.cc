#include "cli/output/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/csv_cell.h"
#include "base/input_error.h"
#include "base/markdown_text.h"
#include "base/number_text.h"
#include "base/short_text.h"
#include "base/shortened.h"
#include "base/terminal_text.h"
#include "cli/options/text_page.h"
#include "cli/output/progress.h"
#include "traces/trace.h"

namespace spillway::cli {
namespace {

constexpr std::size_t longest_cell = 500;  // of a table for people; CSV and JSON have all of it

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_of("0123456789") != std::string_view::npos &&
         text.find_first_not_of("0123456789+-.,e%") == std::string_view::npos;
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

Table::Table(std::vector<std::string> headings, std::size_t keys) : headings_(std::move(headings)), keys_(keys) {}

void Table::add(std::vector<std::string> row) {
  SPILLWAY_ASSERT(row.size() == headings_.size());
  rows_.push_back(std::move(row));
}

namespace {

// Of a column of text on a page: longer ones are wrapped. In narrower ones words are cut as well.
constexpr std::size_t widest_words = 40, narrower_words[] = {26, 22, 18};

// In lines of at most `width` characters where spaces, or the signs that names are joined with, allow it.
std::vector<std::string> cut(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::string& line : wrapped(text, width, 2)) {
    while (shown_width(line) > width) {
      const std::size_t at = line.find_last_of("/_.,=-", width - 1);
      if (at == std::string::npos || line.find_first_not_of(' ') >= at) break;
      lines.push_back(line.substr(0, at + 1));
      line = "  " + line.substr(at + 1);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// Rows of cells as a page shows them.
class TextTable {
 public:
  TextTable(const std::vector<std::string>& headings, const std::vector<std::vector<std::string>>& rows,
            std::size_t page, std::size_t words, std::size_t keys)
      : page_(page), words_(words), keys_(keys) {
    for (std::size_t i = 0; i < headings.size(); ++i) {
      // Every row is as wide as the widest: one long value would be paid for in each.
      std::vector<std::string> cells = {headings[i]};
      for (const auto& row : rows) cells.push_back(shortened(printable(row[i]), longest_cell));
      const bool right = std::all_of(cells.begin() + 1, cells.end(), [](const std::string& cell) {
        return is_number(cell) || cell == "-" || cell.empty();
      });
      Column& column = columns_.emplace_back();
      column.right = right;
      for (const std::string& cell : cells) {
        const bool is_last = i + 1 == headings.size();  // often prose, with addresses
        const std::size_t widest = words_width(is_last);
        const bool wraps = page > 0 && !right && shown_width(cell) > widest;
        column.cells.push_back(!wraps                             ? std::vector<std::string>{cell}
                               : words_ < widest_words || is_last ? cut(cell, widest)
                                                                  : wrapped(cell, widest, 2));
        for (const std::string& each : column.cells.back()) column.width = std::max(column.width, shown_width(each));
      }
    }
    if (!fits())
      for (Column& column : columns_) column.wrap_heading();
  }

  // Beside each other.
  [[nodiscard]] bool fits() const {
    std::size_t all = 0;
    for (const Column& column : columns_) all += column.width + 2;
    return page_ == 0 || all <= page_ + 2;
  }
  std::string text() {
    const bool has_headings = std::any_of(columns_.begin(), columns_.end(),
                                          [](const Column& column) { return !column.cells.front().front().empty(); });
    for (std::size_t from = 0, to = 0; from < columns_.size(); from = to) {
      std::vector<const Column*> shown;
      std::size_t used = 0;
      for (std::size_t key = 0; from > 0 && key < keys_below(); ++key) {
        used += (shown.empty() ? 0 : 2) + columns_[key].width;
        shown.push_back(&columns_[key]);
      }
      while (to < columns_.size() && (to == from || page_ == 0 || used + 2 + columns_[to].width <= page_)) {
        used += (shown.empty() ? 0 : 2) + columns_[to].width;
        shown.push_back(&columns_[to++]);
      }
      if (from > 0) out_ += "\n";
      for (std::size_t row = has_headings ? 0 : 1; row < columns_.front().cells.size(); ++row) add_row(shown, row);
    }
    return std::move(out_);
  }

 private:
  struct Column {
    std::vector<std::vector<std::string>> cells;  // lines of each; the heading first
    std::size_t width = 0;
    bool right = false;

    // No wider than the cells below it, as far as its words allow.
    void wrap_heading() {
      std::size_t widest = 0;
      for (std::size_t row = 1; row < cells.size(); ++row)
        for (const std::string& each : cells[row]) widest = std::max(widest, shown_width(each));
      for (const std::string& word : wrapped(cells.front().front(), 1)) widest = std::max(widest, shown_width(word));
      cells.front() = wrapped(cells.front().front(), widest);
      width = widest;
    }
  };

  // All that name a row, where they leave half of the page; else the first.
  [[nodiscard]] std::size_t keys_below() const {
    std::size_t used = 0;
    for (std::size_t key = 0; key < keys_; ++key) used += columns_[key].width + 2;
    return used <= page_ / 2 ? keys_ : 1;
  }

  // What stands before the last column may leave it more.
  [[nodiscard]] std::size_t words_width(bool is_last) const {
    std::size_t used = 0;
    for (std::size_t i = 0; i + 1 < columns_.size(); ++i) used += columns_[i].width + 2;
    const std::size_t least = std::min(words_, page_ / 2 - 1);
    return is_last && used + least < page_ ? page_ - used : least;
  }

  void add_row(const std::vector<const Column*>& shown, std::size_t row) {
    std::size_t lines = 0;
    for (const Column* column : shown) lines = std::max(lines, column->cells[row].size());
    for (std::size_t i = 0; i < lines; ++i) {
      std::string line;
      for (std::size_t c = 0; c < shown.size(); ++c) {
        const std::vector<std::string>& cell = shown[c]->cells[row];
        const std::string words = i < cell.size() ? cell[i] : "";
        const std::string padding(shown[c]->width - shown_width(words), ' ');
        line += (c == 0 ? "" : "  ") + (shown[c]->right ? padding + words : words + padding);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out_ += line + "\n";
    }
  }

  std::size_t page_, words_, keys_;
  std::vector<Column> columns_;
  std::string out_;
};

}  // namespace

std::string Table::text(std::size_t width) const {
  TextTable table(headings_, rows_, width, widest_words, keys_);
  if (table.fits()) return table.text();
  for (const std::size_t words : narrower_words)
    if (TextTable narrow(headings_, rows_, width, words, keys_); narrow.fits()) return narrow.text();
  return table.text();
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
  clear_progress();
  std::fwrite(written.data(), 1, written.size(), stdout);
}

void print(const Context& context, const Table& table) {
  print(context.csv() ? table.csv() : context.markdown() ? table.markdown() : table.text(table_width()));
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

std::string for_people(Bytes bytes) { return bytes < Bytes(0) ? "-" : short_size(bytes); }

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

}  // namespace spillway::cli
