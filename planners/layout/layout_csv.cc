#include "planners/layout/layout_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "planners/layout/layout_check.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t largest_time = std::int64_t{1} << 61, largest_sum = std::int64_t{1} << 62;

enum Column : std::size_t { id, lower, upper, size, alignment, offset, column_count };

struct Name {
  std::string_view text;
  Column column;
  bool inclusive;
};
constexpr Name names[] = {
    {"id", id, false},       {"buffer", id, false},           {"buffer_id", id, false}, {"lower", lower, false},
    {"start", lower, false}, {"begin", lower, false},         {"upper", upper, false},  {"end", upper, true},
    {"size", size, false},   {"alignment", alignment, false}, {"offset", offset, false}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  LayoutTable read() {
    read_header();
    while (next_line()) {
      if (fields_.size() == 1 && fields_[0].empty()) continue;
      read_row();
    }
    if (table_.buffers.empty()) throw InputError(file_, "", "has no buffers", "give one line for each");
    check_ids();
    check_sums();
    check_given_offsets();
    return std::move(table_);
  }

 private:
  [[noreturn]] void refuse(std::uint64_t line, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, "line " + std::to_string(line), cause, remedy);
  }

  // Splits the next line; false at the end.
  bool next_line() {
    if (rest_.empty()) return false;
    ++line_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    fields_.clear();
    while (true) {
      const std::size_t comma = end_of_field(text);
      fields_.push_back(trimmed(text.substr(0, comma)));
      if (comma == text.size()) return true;
      text.remove_prefix(comma + 1);
    }
  }

  static std::size_t end_of_field(std::string_view text) {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (text[i] == ',' && !quoted) return i;
    }
    return text.size();
  }

  void read_header() {
    constexpr const char* remedy = "begin with a line id,lower,upper,size";
    if (!next_line()) throw InputError(file_, "", "is empty", remedy);
    where_.fill(column_count);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto* name =
          std::find_if(std::begin(names), std::end(names), [&](const Name& known) { return known.text == fields_[i]; });
      if (name == std::end(names)) {
        std::vector<std::string> known;
        for (const Name& each : names) known.emplace_back(each.text);
        const std::string word(fields_[i]);
        refuse(line_, "unknown column \"" + word + "\"", suggest(word, known));
      }
      if (where_[name->column] != column_count)
        refuse(line_, "two columns for " + std::string(names_of(name->column)), "leave one of them out");
      where_[name->column] = i;
      if (name->column == upper) inclusive_ = name->inclusive;
    }
    columns_ = fields_.size();
    for (const Column needed : {id, lower, upper, size})
      if (where_[needed] == column_count) refuse(line_, "no column \"" + std::string(names_of(needed)) + "\"", remedy);
  }

  static std::string_view names_of(Column column) {
    return std::find_if(std::begin(names), std::end(names), [&](const Name& name) { return name.column == column; })
        ->text;
  }

  [[nodiscard]] std::int64_t integer(Column column) const {
    const std::string_view text = fields_[where_[column]];
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) return value;
    const std::string what = std::string(names_of(column)) + " \"" + std::string(text) + "\" ";
    if (error == std::errc::result_out_of_range) refuse(line_, what + "is beyond 64 bits", "use larger units");
    refuse(line_, what + "is no whole number", "give a whole number");
  }

  void read_row() {
    if (fields_.size() != columns_)
      refuse(line_, std::to_string(fields_.size()) + " fields where the header has " + std::to_string(columns_),
             "give one value for each column");
    LayoutBuffer buffer;
    buffer.lower = integer(lower);
    buffer.upper = integer(upper);
    buffer.size = integer(size);
    if (std::max(std::abs(buffer.lower), std::abs(buffer.upper)) > largest_time)
      refuse(line_, "a time beyond 2^61", "use larger units of time");
    if (inclusive_) ++buffer.upper;
    if (buffer.upper <= buffer.lower)
      refuse(line_, inclusive_ ? "the buffer ends before it begins" : "upper is not above lower",
             "a buffer is alive from lower up to, not including, upper");
    if (buffer.size < 0) refuse(line_, "a negative size", "give sizes of 0 and more");
    if (where_[alignment] != column_count && !fields_[where_[alignment]].empty()) {
      buffer.alignment = integer(alignment);
      if (buffer.alignment < 1) refuse(line_, "an alignment below 1", "give 1 for none");
    }
    if (where_[offset] != column_count && !fields_[where_[offset]].empty()) {
      buffer.fixed_offset = integer(offset);
      if (buffer.fixed_offset < 0) refuse(line_, "a negative offset", "leave it empty where it is free");
    }
    table_.ids.push_back(unquoted(fields_[where_[id]]));
    table_.buffers.push_back(buffer);
    lines_.push_back(line_);
  }

  static std::string unquoted(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
    std::string plain;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      plain += text[i];
      if (text[i] == '"') ++i;
    }
    return plain;
  }

  void check_ids() const {
    std::vector<std::size_t> order(table_.ids.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair<const std::string&, std::size_t>(table_.ids[a], a) <
             std::pair<const std::string&, std::size_t>(table_.ids[b], b);
    });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (table_.ids[order[i - 1]] == table_.ids[order[i]])
        refuse(lines_[order[i]],
               "id \"" + table_.ids[order[i]] + "\" again, first on line " + std::to_string(lines_[order[i - 1]]),
               "give each buffer its own id");
  }

  void check_sums() const {
    std::int64_t sum = 0;
    const auto add = [&](std::size_t i, std::int64_t amount) {
      if (amount >= largest_sum - sum) refuse(lines_[i], "sizes add up to 2^62 or more", "use larger units");
      sum += amount;
    };
    for (std::size_t i = 0; i < table_.buffers.size(); ++i) {
      add(i, table_.buffers[i].size);
      add(i, table_.buffers[i].alignment - 1);
    }
    std::int64_t highest = 0;
    std::size_t which = 0;
    for (std::size_t i = 0; i < table_.buffers.size(); ++i) {
      if (table_.buffers[i].fixed_offset <= highest) continue;
      highest = table_.buffers[i].fixed_offset;
      which = i;
    }
    add(which, highest);
  }

  void check_given_offsets() const {
    std::vector<LaidBuffer> given;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < table_.buffers.size(); ++i) {
      const LayoutBuffer& buffer = table_.buffers[i];
      if (buffer.fixed_offset < 0) continue;
      given.push_back({buffer.lower, buffer.upper, buffer.size, buffer.fixed_offset, 1});
      rows.push_back(i);
    }
    const LayoutVerdict verdict = check_layout(given);
    if (!verdict.legal())
      refuse(lines_[rows[verdict.culprit]],
             "the given offset of \"" + table_.ids[rows[verdict.culprit]] + "\" overlaps another buffer's",
             "leave offsets empty that the solver may choose");
  }

  std::string_view rest_;
  const std::string& file_;
  std::uint64_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::array<std::size_t, column_count> where_{};
  std::size_t columns_ = 0;
  bool inclusive_ = false;
  LayoutTable table_;
  std::vector<std::uint64_t> lines_;
};

void append_field(std::string& text, std::string_view field) {
  if (field.find_first_of(",\"") == std::string_view::npos) {
    text += field;
    return;
  }
  text += '"';
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  text += '"';
}

}  // namespace

LayoutTable read_layout_csv(std::string_view text, const std::string& file) { return Reader(text, file).read(); }

std::string write_layout_csv(const LayoutTable& table, std::span<const std::int64_t> offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < table.buffers.size(); ++i) {
    const LayoutBuffer& buffer = table.buffers[i];
    append_field(text, table.ids[i]);
    for (const std::int64_t value : {buffer.lower, buffer.upper, buffer.size, offsets[i]})
      text.append(1, ',').append(std::to_string(value));
    text += '\n';
  }
  return text;
}

}  // namespace spillway::planners
