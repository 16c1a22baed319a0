#include "traces/formats/spillway_json.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/input_error.h"
#include "base/json_integer.h"
#include "traces/acyclic.h"
#include "traces/formats/json_rows.h"
#include "traces/trace_columns.h"
#include "traces/utf8.h"

namespace spillway::traces {
namespace {

using Json = nlohmann::json;

std::string json_text_of(std::string_view text) { return Json(to_valid_utf8(text)).dump(); }

class JsonTableWriter {
 public:
  JsonTableWriter(const Trace& trace, OutputFile& out) : trace_(trace), out_(out) {}

  void table(const char* name, std::size_t rows) {
    finish();
    out_.write(",\n\"" + std::string(name) + "\": {");
    rows_ = rows;
    open_ = true;
    first_ = true;
  }
  bool optional_table(const char* name, std::size_t rows) {
    if (rows > 0) table(name, rows);
    return rows > 0;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType& type, const Resize&, const Get& get, const Set&) {
    std::string text = std::string(first_ ? "\n" : ",\n") + "  \"" + name + "\": [";
    first_ = false;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (i != 0) text += ", ";
      text += value(type, get(i));
    }
    out_.write(text + "]");
  }
  void finish() {
    if (open_) out_.write("}");
    open_ = false;
  }

 private:
  [[nodiscard]] std::string value(const ColumnType& type, std::int64_t number) const {
    if (type.is_text) return json_text_of(trace_.strings.text(static_cast<StringId>(number)));
    if (!type.names.empty()) return json_text_of(type.names[static_cast<std::size_t>(number)]);
    return type.unknown == number ? "null" : std::to_string(number);
  }

  const Trace& trace_;
  OutputFile& out_;
  std::size_t rows_ = 0;
  bool open_ = false, first_ = false;
};

class JsonTableReader {
 public:
  JsonTableReader(std::string file, std::map<std::string, Json, std::less<>> tables, Trace& trace)
      : file_(std::move(file)), tables_(std::move(tables)), trace_(trace) {}

  void table(const char* name, std::size_t) {
    table_ = name;
    const Json& table = current();
    if (!table.is_null() && !table.is_object()) fail("", "is not an object of columns");
    rows_ = 0;
    if (!table.is_object()) return;
    for (const auto& column : table.items()) {
      if (!column.value().is_array()) fail(column.key(), "is not a list");
      rows_ = std::max(rows_, column.value().size());
    }
  }
  bool optional_table(const char* name, std::size_t) {
    table(name, 0);
    return current().is_object();
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType& type, const Resize& resize, const Get&, const Set& set) {
    resize(rows_);
    const Json& values = json_member(current(), name);
    if (!values.is_null() && values.size() != rows_) fail(name, "is shorter than the other columns");
    if (values.is_null() && !type.unknown) return;  // what the rows begin with stays
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::string place = std::string(name) + "/" + std::to_string(i);
      const std::int64_t number = values.is_null() ? *type.unknown : number_of(type, values[i], place);
      if (!set(i, number)) fail(place, "is out of range");
    }
  }

 private:
  [[nodiscard]] const Json& current() const {
    static const Json none;
    const auto found = tables_.find(table_);
    return found == tables_.end() ? none : found->second;
  }

  std::int64_t number_of(const ColumnType& type, const Json& value, const std::string& place) {
    if (type.is_text && value.is_string()) return static_cast<std::int64_t>(trace_.strings.intern(json_text(value)));
    if (!type.names.empty() && value.is_string()) {
      const auto found = std::find(type.names.begin(), type.names.end(), json_text(value));
      if (found != type.names.end()) return found - type.names.begin();
    }
    const bool is_number = !type.is_text && type.names.empty() && value.is_number_integer();
    if (is_number) return value.get<std::int64_t>();
    if (type.unknown && value.is_null()) return *type.unknown;
    fail(place, type.is_text ? "is not a text" : type.names.empty() ? "is not an integer" : "is not a known name");
  }

  [[noreturn]] void fail(const std::string& column, const std::string& what) const {
    const std::string place = "/" + std::string(table_) + (column.empty() ? "" : "/" + column);
    throw InputError(file_, place, place + " " + what, "see docs/schemas/trace.schema.json");
  }

  std::string file_;
  std::map<std::string, Json, std::less<>> tables_;
  Trace& trace_;
  const char* table_ = "";
  std::size_t rows_ = 0;
};

}  // namespace

void write_spillway_json(const Trace& trace, OutputFile& out) {
  const TraceRemainder remainder = remainder_of(trace);
  out.write("{\"schema\": " + Json(trace_json_schema).dump() + ", \"version\": " + std::to_string(trace_json_version) +
            ",\n\"strings\": [");
  for (std::size_t i = 0; i < trace.strings.size(); ++i)
    out.write((i == 0 ? "" : ", ") + json_text_of(trace.strings.text(static_cast<StringId>(i))));
  out.write("],\n\"about\": {\"numbers\": " + Json(remainder.numbers).dump() + ", \"texts\": [");
  for (std::size_t i = 0; i < remainder.texts.size(); ++i)
    out.write((i == 0 ? "" : ", ") + json_text_of(remainder.texts[i]));
  out.write("]}");
  JsonTableWriter writer(trace, out);
  visit_trace(const_cast<Trace&>(trace), writer);  // only reads: set is never called
  writer.finish();
  out.write("\n}\n");
}

Trace read_spillway_json(ByteSource& source, const ReadOptions& options) {
  const std::string file = source.name();
  const std::string text = source.read_all(std::min(options.max_decompressed_bytes, std::uint64_t{8} << 30));
  Trace trace;
  TraceRemainder remainder;
  std::map<std::string, Json, std::less<>> tables;
  bool named = false;
  const auto fail = [&](const std::string& place, const std::string& cause) {
    throw InputError(file, place, cause, "see docs/schemas/trace.schema.json");
  };
  FileMemory memory(file);
  read_json_rows(text, memory, [&](std::string_view key, Json& row) {
    if (key == "schema") named = row == trace_json_schema;
    if (key == "version" && row != trace_json_version)
      fail("/version", "this version of the trace format is not known");
    if (key == "strings") trace.strings.intern(json_text(row));
    if (row.is_object()) tables[std::string(key)] = std::move(row);
  });
  if (!named) fail("/schema", "not a spillway trace: \"schema\" is not \"spillway.trace\"");
  if (const auto about = tables.find("about"); about != tables.end()) {
    for (const Json& number : json_member(about->second, "numbers"))
      remainder.numbers.push_back(json_integer(number).value_or(0));
    for (const Json& t : json_member(about->second, "texts")) remainder.texts.emplace_back(json_text(t));
    if (!restore_remainder(remainder, trace)) fail("/about", "\"about\" does not fit together");
  }
  JsonTableReader reader(file, std::move(tables), trace);
  visit_trace(trace, reader);
  const std::string problem = first_inconsistency(trace);
  if (!problem.empty()) fail("", problem + " refers to something that is not there");
  check_acyclic(trace);
  trace.check_invariants();
  return trace;
}

}  // namespace spillway::traces
