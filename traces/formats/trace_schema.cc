#include "traces/formats/trace_schema.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "traces/formats/spillway_json.h"
#include "traces/trace_columns.h"

namespace spillway::traces {
namespace {

using OrderedJson = nlohmann::ordered_json;

// What there is to say of a table beyond its columns.
std::string about_of(const std::string& table) {
  if (table == "span_externals") return "Kineto's \"External id\" of each span; absent or one per span.";
  if (table == "carried")
    return "Edges into the next step: row i says that op `to`, there, waits for op `from` of this step. Left out where "
           "there are none.";
  if (table == "start_up")
    return "What was asked of the allocator before the first iteration, see traces/trace.h. Left out where nothing is "
           "known of it.";
  if (table == "stream_gaps") return "Pauses between queued ops, see traces/trace.h.";
  return "Columns of equal length; row i is number i of " + table + ", counted from 0.";
}

// A visitor of visit_trace() that reads and sets nothing.
class SchemaTables {
 public:
  void table(const char* name, std::size_t) {
    table_ = name;
    tables_[table_] = {{"type", "object"},
                       {"description", about_of(table_)},
                       {"properties", OrderedJson::object()},
                       {"additionalProperties", false}};
  }
  bool optional_table(const char* name, std::size_t rows) {
    table(name, rows);
    return true;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType& type, const Resize&, const Get&, const Set&) {
    tables_[table_]["properties"][name] = {{"type", "array"}, {"items", items(type)}};
  }
  [[nodiscard]] const OrderedJson& tables() const { return tables_; }

 private:
  static OrderedJson items(const ColumnType& type) {
    if (type.is_text) return {{"type", "string"}};
    if (type.is_flag) return {{"enum", {0, 1}}};
    if (!type.names.empty()) return {{"enum", std::vector<std::string_view>(type.names.begin(), type.names.end())}};
    return {{"type", type.unknown ? OrderedJson{"integer", "null"} : OrderedJson("integer")}};
  }

  OrderedJson tables_ = OrderedJson::object();
  std::string table_;
};

OrderedJson list_of(const char* type) { return {{"type", "array"}, {"items", {{"type", type}}}}; }

}  // namespace

std::string trace_schema() {
  OrderedJson strings = list_of("string");
  strings["description"] = "Texts in the order of their numbers; the first is empty.";
  OrderedJson schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "trace.schema.json"},
      {"title", "spillway trace"},
      {"description",
       "One or several training steps, column by column. Times are integer picoseconds (_ps), sizes integer bytes, ids "
       "are row numbers of the table they point into, null is not known."},
      {"type", "object"},
      {"required", {"schema", "version"}},
      {"properties",
       {{"schema", {{"const", trace_json_schema}}},
        {"version", {{"const", trace_json_version}}},
        {"strings", std::move(strings)},
        {"about",
         {{"type", "object"},
          {"description", "Capabilities, counts, provenance and findings, as traces/trace_columns.h packs them."},
          {"properties", {{"numbers", list_of("integer")}, {"texts", list_of("string")}}}}}}}};
  Trace trace;
  SchemaTables visitor;
  visit_trace(trace, visitor);
  for (const auto& [name, table] : visitor.tables().items()) schema["properties"][name] = table;
  return schema.dump(2) + "\n";
}

}  // namespace spillway::traces
