#include "traces/formats/sqlite_rows.h"

#include <sqlite3.h>

#include <set>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

class StatementRow : public SqliteRow {
 public:
  explicit StatementRow(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t column) const override {
    const int at = static_cast<int>(column);
    if (sqlite3_column_type(statement_, at) != SQLITE_INTEGER) return {};
    return sqlite3_column_int64(statement_, at);
  }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    const int at = static_cast<int>(column);
    if (sqlite3_column_type(statement_, at) != SQLITE_TEXT) return {};
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    return bytes == nullptr ? std::string_view()
                            : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, at)));
  }

 private:
  sqlite3_stmt* statement_;
};

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

// A file: address in which nothing of the path is taken for syntax.
std::string uri_of(const std::string& path) {
  constexpr char digits[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = c == '/' || c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') ||
                       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
      uri += c;
    else
      (uri += '%') += {digits[byte >> 4U], digits[byte & 15U]};
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

struct SqliteFile::State {
  std::string path;
  sqlite3* database = nullptr;

  [[noreturn]] void fail() const {
    throw InputError(path, "", std::string("not a readable SQLite file: ") + sqlite3_errmsg(database),
                     "export it again with nsys export --type sqlite");
  }
  [[nodiscard]] Statement prepare(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail();
    return Statement(statement);
  }
};

SqliteFile::SqliteFile(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(uri_of(path).c_str(), &state_->database, flags, nullptr) == SQLITE_OK) {
    sqlite3_limit(state_->database, SQLITE_LIMIT_LENGTH, 1 << 26);
    // A file can define views and triggers; none of their functions may have side effects.
    sqlite3_db_config(state_->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(state_->database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    return;
  }
  const std::string cause = sqlite3_errmsg(state_->database);
  sqlite3_close(state_->database);
  throw InputError(path, "", "can't open it as an SQLite file: " + cause, "check the path and its permissions");
}

SqliteFile::~SqliteFile() { sqlite3_close(state_->database); }

bool SqliteFile::has_table(const std::string& table) const {
  const Statement statement = state_->prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1");
  sqlite3_bind_text(statement.get(), 1, table.c_str(), -1, SQLITE_TRANSIENT);
  const int result = sqlite3_step(statement.get());
  if (result != SQLITE_ROW && result != SQLITE_DONE) state_->fail();
  return result == SQLITE_ROW;
}

void SqliteFile::for_rows(const std::string& table, const std::vector<std::string>& columns,
                          const std::function<void(const SqliteRow&)>& visit) const {
  if (!has_table(table)) return;
  std::set<std::string> present;
  const Statement info = state_->prepare("PRAGMA table_info(" + quoted(table) + ")");
  while (sqlite3_step(info.get()) == SQLITE_ROW) present.emplace(StatementRow(info.get()).text(1));
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < columns.size(); ++i)
    sql += (i == 0 ? "" : ", ") + (present.contains(columns[i]) ? quoted(columns[i]) : std::string("NULL"));
  const Statement statement = state_->prepare(sql + " FROM " + quoted(table));
  const StatementRow row(statement.get());
  int result = sqlite3_step(statement.get());
  for (; result == SQLITE_ROW; result = sqlite3_step(statement.get())) visit(row);
  if (result != SQLITE_DONE) state_->fail();
}

}  // namespace spillway::traces
