#include "base/field_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway {
namespace {

std::string value_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<std::int64_t>(value))
                                                              : fmt::format("{}", value);
}

std::string range_of(const FieldInfo& info, const std::string& noun) {
  if (std::isfinite(info.max))
    return noun + (info.above_min ? ", above " : ", ") + value_text(info.min) + " to " + value_text(info.max);
  return std::isfinite(info.min) ? noun + (info.above_min ? ", above " : ", from ") + value_text(info.min) : noun;
}

// A cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

}  // namespace

std::string FieldRow::takes() const {
  switch (kind) {
    case FieldKind::text:
      return info.path == FieldPath::none ? "text" : info.path == FieldPath::file ? "file" : "name or file";
    case FieldKind::flag:
      return "true or false";
    case FieldKind::word:
      return words->listed();
    case FieldKind::word_or_file:
      return words->listed() + ", or a file";
    case FieldKind::integer:
      return range_of(info, "whole number") + (info.dimension == Dimension::plain ? "" : ", or a text with a unit");
    case FieldKind::number:
      return range_of(info, "number") + (info.dimension == Dimension::plain ? "" : ", or a text with a unit");
    case FieldKind::scalar:
      return "value";
    case FieldKind::list:
      if (words != nullptr) return "list of " + words->listed();
      return std::isfinite(info.max) ? range_of(info, "list of whole numbers") : "list";
    case FieldKind::quantity:
      return "number with a unit";
    case FieldKind::curve:
      return "table";
    case FieldKind::object:
    case FieldKind::group:
      return "object";
    case FieldKind::groups:
      return "list of objects";
    case FieldKind::map:
      return "names and their values";
  }
  return "";
}

void FieldRows::add(FieldKind kind, const FieldInfo& info, std::string otherwise, const Words* words) {
  rows_.push_back({path_of(info.key), kind, info, std::move(otherwise), words, lists_ > 0});
}

void FieldRows::head(const DocumentHead& head) {
  add(FieldKind::text, {.key = "schema", .about = "What the document is.", .required = true}, std::string(head.schema));
  if (head.version > 0)
    add(FieldKind::integer, {.key = "version", .about = "Of the document's form.", .required = true},
        std::to_string(head.version));
}

void FieldRows::constant(const FieldInfo& info, std::string_view text) {
  add(FieldKind::text, info, std::string(text));
}

void FieldRows::text(const FieldInfo& info, std::optional<std::string>& value) {
  add(FieldKind::text, info, value.value_or(""));
}

void FieldRows::flag(const FieldInfo& info, std::optional<bool>& value) {
  add(FieldKind::flag, info, value ? (*value ? "true" : "false") : "");
}

void FieldRows::word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) {
  add(FieldKind::word, info, place && *place < words.size() ? std::string(words[*place].name) : "", &words);
}

void FieldRows::word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) {
  add(FieldKind::word_or_file, info, value.value_or(""), &words);
}

void FieldRows::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  add(FieldKind::integer, info, value ? std::to_string(*value) : "");
}

void FieldRows::number(const FieldInfo& info, std::optional<double>& value) {
  add(FieldKind::number, info, value ? fmt::format("{}", *value) : "");
}

void FieldRows::hex(const FieldInfo& info, std::optional<std::uint64_t>& /*value*/) { add(FieldKind::text, info); }

void FieldRows::scalar(const FieldInfo& info, std::optional<Scalar>& value) {
  add(FieldKind::scalar, info, value ? value->text : "");
}

void FieldRows::object(const FieldInfo& info, std::optional<std::string>& /*value*/) { add(FieldKind::object, info); }

void FieldRows::texts(const FieldInfo& info, std::vector<std::string>& /*values*/) { add(FieldKind::list, info); }

void FieldRows::word_list(const FieldInfo& info, std::vector<std::size_t>& /*places*/, const Words& words) {
  add(FieldKind::list, info, "", &words);
}

void FieldRows::integers(const FieldInfo& info, std::vector<std::int64_t>& /*values*/) { add(FieldKind::list, info); }

void FieldRows::numbers(const FieldInfo& info, std::vector<double>& /*values*/) { add(FieldKind::list, info); }

void FieldRows::scalars(const FieldInfo& info, std::vector<Scalar>& /*values*/) { add(FieldKind::list, info); }

bool FieldRows::begin_group(const FieldInfo& info) {
  add(FieldKind::group, info);
  return PathVisitor::begin_group(info);
}

std::size_t FieldRows::begin_list(const FieldInfo& info, std::size_t current) {
  add(info.as_tuple || info.as_value ? FieldKind::list : FieldKind::groups, info);
  ++lists_;
  PathVisitor::begin_list(info, current);
  return 1;
}

void FieldRows::end_list() {
  --lists_;
  PathVisitor::end_list();
}

std::vector<std::string> FieldRows::begin_map(const FieldInfo& info, std::vector<std::string> current) {
  add(FieldKind::map, info);
  ++lists_;
  PathVisitor::begin_map(info, std::move(current));
  return {"NAME"};
}

void FieldRows::end_map() {
  --lists_;
  PathVisitor::end_map();
}

std::string markdown_table(const std::vector<FieldRow>& rows) {
  std::string table = "| Key | Takes | Default | Meaning |\n|---|---|---|---|\n";
  for (const FieldRow& row : rows) {
    if (row.kind == FieldKind::group || row.inside_list) continue;
    std::string about(row.info.about);
    if (row.words != nullptr)
      for (const Word& word : *row.words)
        if (!word.about.empty())
          about += fmt::format("{}{}: {}", about.empty() ? "" : " ", code(std::string(word.name)), word.about) + ".";
    table +=
        fmt::format("| {} | {} | {} | {} |\n", code(row.path), cell(row.takes()), code(row.otherwise), cell(about));
  }
  return table;
}

}  // namespace spillway
