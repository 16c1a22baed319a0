#include "reports/sweep_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <boost/algorithm/string/case_conv.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/input_error.h"
#include "base/output_file.h"
#include "reports/sweep_report.h"

namespace spillway::reports {
namespace {

using Json = nlohmann::ordered_json;

struct Close {
  void operator()(sqlite3* base) const { sqlite3_close(base); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

// A database that is open, and the file that messages name.
struct Base {
  std::string path;
  std::unique_ptr<sqlite3, Close> base;

  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(path, "", cause, "name a file that isn't there, or an SQLite database that can be written");
  }
  [[nodiscard]] Statement statement(const std::string& sql) const {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(base.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) fail(sqlite3_errmsg(base.get()));
    return Statement(made);
  }
  void run(const std::string& sql) const {
    if (sqlite3_exec(base.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(sqlite3_errmsg(base.get()));
  }
};

// A path, or ":memory:".
Base open_base(const std::string& path, const std::string& name, int flags) {
  sqlite3* made = nullptr;
  const int opened = sqlite3_open_v2(name.c_str(), &made, flags, nullptr);
  Base base{path, std::unique_ptr<sqlite3, Close>(made)};
  if (opened != SQLITE_OK) base.fail(sqlite3_errmsg(made));
  constexpr int wait_ms = 10'000;  // for other programs' transactions
  sqlite3_busy_timeout(made, wait_ms);
  sqlite3_db_config(made, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);  // a stranger's file may define triggers
  return base;
}

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// The values of one row, in the order of the columns.
void insert(const Base& base, const std::string& table, const std::vector<Json>& row) {
  std::string places;
  for (std::size_t i = 0; i < row.size(); ++i) places += i == 0 ? "?" : ",?";
  const Statement statement = base.statement("insert into " + table + " values (" + places + ")");
  sqlite3_stmt* const made = statement.get();
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
  if (sqlite3_step(made) != SQLITE_DONE) base.fail(sqlite3_errmsg(base.base.get()));
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

// Of a database on the disk: its tables, views and triggers, of either kind.
struct Content {
  bool has_ours = false, has_others = false;
};

// Throws InputError where names of ours are somebody else's.
Content content_of(const Base& base) {
  Content content;
  int names = 0;
  {
    const Statement asked = base.statement(
        "select lower(name) in ('points', 'sweep') from sqlite_master where name not "
        "like 'sqlite\\_%' escape '\\'");
    int step = 0;
    while ((step = sqlite3_step(asked.get())) == SQLITE_ROW)
      if (sqlite3_column_int(asked.get(), 0) != 0)
        ++names;
      else
        content.has_others = true;
    if (step != SQLITE_DONE) base.fail(sqlite3_errmsg(base.base.get()));
  }
  if (names == 0) return content;
  const auto has = [&base](const char* sql) {
    sqlite3_stmt* made = nullptr;
    const bool is_sound = sqlite3_prepare_v2(base.base.get(), sql, -1, &made, nullptr) == SQLITE_OK;
    const Statement statement(made);
    return is_sound && sqlite3_step(made) == SQLITE_ROW;
  };
  content.has_ours = names == 2 && has("select value from sweep where name = 'schema' and value = 'spillway.sweep'") &&
                     has("select count(point), count(label), count(settings), count(step_time_ns) from points") &&
                     has("select 1 from sqlite_master where type = 'table' and name = 'points'") &&
                     has("select 1 from sqlite_master where type = 'table' and name = 'sweep'");
  if (!content.has_ours) base.fail("has a table \"points\" or \"sweep\" that no sweep wrote, so it is left as it is");
  return content;
}

// The database where other tables are to stay, or others may have it open; none where the file is written anew.
std::optional<Base> kept_database(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::is_empty(path, none)) return std::nullopt;
  std::array<char, 20> header{};
  std::ifstream(path, std::ios::binary).read(header.data(), header.size());
  if (std::string_view(header.data(), 16) != std::string_view("SQLite format 3\0", 16))
    throw InputError(path, "", "no SQLite database, so it is left as it is",
                     "name a file that isn't there, or such a database");
  Base base = open_base(path, std::filesystem::absolute(path).string(), SQLITE_OPEN_READWRITE);
  const Content content = content_of(base);
  const bool has_log = header[18] == 2;  // write-ahead: part of it may lie beside the file
  if (content.has_others || has_log) return base;
  return std::nullopt;
}

void fill(const Base& base, const SweepFile& file, const SweepOutcome& outcome) {
  std::string sql = "create table points (point integer primary key, label text";
  std::set<std::string> taken;  // SQLite takes "axis_b" and "axis_B" for one name
  for (const SweepAxis& axis : file.axes) {
    std::string name = "axis_" + axis.name;
    while (!taken.insert(boost::algorithm::to_lower_copy(name)).second) name += "_2";
    sql += ", " + sql_name(name) + " text";
  }
  for (const auto& [name, type] : columns) sql += fmt::format(", {} {}", name, type);
  base.run(sql + ")");
  base.run("create table sweep (name text primary key, value text)");
  const Json answer = sweep_json(file, outcome);
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    const Json from = sweep_row_json(outcome.rows[i]);
    std::vector<Json> row = {Json(outcome.rows[i].number), Json(outcome.rows[i].candidate.name)};
    for (std::size_t a = 0; a < file.axes.size(); ++a)
      row.push_back(a < outcome.rows[i].options.size() ? Json(outcome.rows[i].options[a]) : Json());
    for (const auto& [name, type] : columns) row.push_back(from.contains(name) ? from[name] : Json());
    insert(base, "points", row);
  }
  for (const auto& [name, value] : answer.items())
    if (name != "rows") insert(base, "sweep", {Json(name), Json(value.is_string() ? value : Json(value.dump()))});
}

}  // namespace

void check_sweep_database(const std::string& path) { static_cast<void>(kept_database(path)); }

void write_sweep_database(const std::string& path, const SweepFile& file, const SweepOutcome& outcome) {
  if (const std::optional<Base> kept = kept_database(path)) {
    kept->run("begin immediate");  // undone by closing
    if (content_of(*kept).has_ours) kept->run("drop table points; drop table sweep");
    fill(*kept, file, outcome);
    return kept->run("commit");
  }
  const Base base = open_base(path, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  base.run("begin");
  fill(base, file, outcome);
  base.run("commit");
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, Close> bytes(sqlite3_serialize(base.base.get(), "main", &size, 0));
  SPILLWAY_ASSERT(bytes != nullptr);
  OutputFile out(path);
  out.write({reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)});
  out.commit();
}

}  // namespace spillway::reports
