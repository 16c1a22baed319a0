#include "reports/sweep_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <boost/algorithm/string/case_conv.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/input_error.h"
#include "reports/sweep_report.h"

namespace spillway::reports {
namespace {

using Json = nlohmann::ordered_json;

struct Close {
  void operator()(sqlite3* base) const { sqlite3_close(base); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
};
using Base = std::unique_ptr<sqlite3, Close>;

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

void run(const Base& base, const std::string& sql) {
  SPILLWAY_ASSERT(sqlite3_exec(base.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
}

// The values of one row, in the order of the columns.
void insert(const Base& base, const std::string& table, const std::vector<Json>& row) {
  std::string places;
  for (std::size_t i = 0; i < row.size(); ++i) places += i == 0 ? "?" : ",?";
  sqlite3_stmt* made = nullptr;
  const std::string sql = "insert into " + table + " values (" + places + ")";
  SPILLWAY_ASSERT(sqlite3_prepare_v2(base.get(), sql.c_str(), -1, &made, nullptr) == SQLITE_OK);
  const std::unique_ptr<sqlite3_stmt, Close> statement(made);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int place = static_cast<int>(i) + 1;
    const Json& value = row[i];
    if (value.is_null())
      sqlite3_bind_null(made, place);
    else if (value.is_boolean())
      sqlite3_bind_int(made, place, value.get<bool>() ? 1 : 0);
    else if (value.is_number_integer())
      sqlite3_bind_int64(made, place, value.get<std::int64_t>());
    else if (value.is_number())
      sqlite3_bind_double(made, place, value.get<double>());
    else {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      sqlite3_bind_text(made, place, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
  }
  SPILLWAY_ASSERT(sqlite3_step(made) == SQLITE_DONE);
}

// Of points: name and type. What the JSON of a row has too bears its name there.
constexpr std::pair<const char*, const char*> columns[] = {{"settings", "text"},
                                                           {"fits", "integer"},
                                                           {"verdict", "text"},
                                                           {"meets_requirements", "integer"},
                                                           {"on_front", "integer"},
                                                           {"step_time_ns", "integer"},
                                                           {"step_time_low_ns", "integer"},
                                                           {"step_time_high_ns", "integer"},
                                                           {"peak_allocated_bytes", "integer"},
                                                           {"peak_reserved_bytes", "integer"},
                                                           {"peak_reserved_low_bytes", "integer"},
                                                           {"peak_reserved_high_bytes", "integer"},
                                                           {"capacity_bytes", "integer"},
                                                           {"gpus", "integer"},
                                                           {"tokens_per_second", "real"},
                                                           {"usd_per_million_tokens", "real"},
                                                           {"kwh_per_million_tokens", "real"},
                                                           {"life_years", "real"},
                                                           {"life_low_years", "real"},
                                                           {"mfu", "real"},
                                                           {"binding_resource", "text"},
                                                           {"fingerprint", "text"},
                                                           {"twin_of", "integer"},
                                                           {"screened_is_bound", "integer"},
                                                           {"screened_step_time_ns", "integer"},
                                                           {"screened_peak_reserved_bytes", "integer"},
                                                           {"failure", "text"}};

}  // namespace

std::string sweep_database(const SweepFile& file, const SweepOutcome& outcome) {
  sqlite3* made = nullptr;
  SPILLWAY_ASSERT(sqlite3_open(":memory:", &made) == SQLITE_OK);
  const Base base(made);
  std::string sql = "create table points (point integer primary key, label text";
  std::set<std::string> taken;  // SQLite takes "axis_b" and "axis_B" for one name
  for (const SweepAxis& axis : file.axes) {
    std::string name = "axis_" + axis.name;
    while (!taken.insert(boost::algorithm::to_lower_copy(name)).second) name += "_2";
    sql += ", " + sql_name(name) + " text";
  }
  for (const auto& [name, type] : columns) sql += fmt::format(", {} {}", name, type);
  run(base, sql + ")");
  run(base, "create table sweep (name text primary key, value text)");
  run(base, "begin");
  const Json answer = sweep_json(file, outcome);
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    const Json from = sweep_row_json(outcome.rows[i]);
    std::vector<Json> row = {Json(outcome.rows[i].number), Json(outcome.rows[i].label)};
    for (std::size_t a = 0; a < file.axes.size(); ++a)
      row.push_back(a < outcome.rows[i].options.size() ? Json(outcome.rows[i].options[a]) : Json());
    for (const auto& [name, type] : columns) row.push_back(from.contains(name) ? from[name] : Json());
    insert(base, "points", row);
  }
  for (const auto& [name, value] : answer.items())
    if (name != "rows") insert(base, "sweep", {Json(name), Json(value.is_string() ? value : Json(value.dump()))});
  run(base, "commit");
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, Close> bytes(sqlite3_serialize(made, "main", &size, 0));
  SPILLWAY_ASSERT(bytes != nullptr);
  return {reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)};
}

}  // namespace spillway::reports
