#include "traces/formats/sqlite_rows.h"

#include <sqlite3.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/input_error.h"
#include "base/memory_limit.h"

namespace spillway::traces {
namespace {

struct StatementCloser {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

class StatementRow : public SqliteRow {
 public:
  explicit StatementRow(sqlite3_stmt* statement) : statement_(statement) {}
  // Bytes of the texts that were asked for.
  [[nodiscard]] std::uint64_t letters() const { return letters_; }
  [[nodiscard]] std::optional<std::int64_t> integer(std::size_t column) const override {
    const int at = static_cast<int>(column);
    if (sqlite3_column_type(statement_, at) != SQLITE_INTEGER) return {};
    return sqlite3_column_int64(statement_, at);
  }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    const int at = static_cast<int>(column);
    if (sqlite3_column_type(statement_, at) != SQLITE_TEXT) return {};
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, at));
    if (bytes == nullptr) return {};
    const std::string_view text(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, at)));
    letters_ += text.size();
    return text;
  }

 private:
  sqlite3_stmt* statement_;
  mutable std::uint64_t letters_ = 0;
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

// What a program that still writes to the file, or was killed, left beside it. A journal that is done with begins with
// zeros. Source of the formats: sqlite.org/fileformat2.html, sections 3 and 4.
void refuse_unfinished(const std::string& path) {
  const auto begins = [](const std::string& file, std::initializer_list<unsigned char> mark) {
    std::array<char, 8> head{};
    std::ifstream(file, std::ios::binary).read(head.data(), head.size());
    return std::memcmp(head.data(), mark.begin(), mark.size()) == 0;
  };
  for (const std::string& beside : {path + "-wal", path + "-journal"})
    if (begins(beside, {0x37, 0x7f, 0x06}) || begins(beside, {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}))
      throw InputError(path, "", "a part of it lies in " + beside + ", which is not read",
                       "let the program that writes it end, or fold it in with sqlite3 FILE 'PRAGMA "
                       "wal_checkpoint(TRUNCATE)'");
}

}  // namespace

struct SqliteFile::State {
  std::string path;
  std::uint64_t bytes = 0;
  sqlite3* database = nullptr;

  [[noreturn]] void fail() const {
    throw InputError(path, "", std::string("not a readable SQLite file: ") + sqlite3_errmsg(database),
                     "export it again with nsys export --type sqlite");
  }
  // A row takes at least its place in a page (2 bytes), its size and its header. A text is asked for a few times.
  void check_proportion(std::uint64_t rows, const StatementRow& row, const std::string& table) const {
    constexpr std::uint64_t least_row = 4, often = 4;
    if (rows > bytes / least_row || row.letters() > often * bytes)
      throw InputError(path, table, "the file is damaged: the table has more rows than fit into it",
                       "export it again with nsys export --type sqlite");
    if (rows % 65'536 == 0) check_memory_limit(path, table);
  }
  [[nodiscard]] Statement prepare(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) fail();
    return Statement(statement);
  }
};

SqliteFile::SqliteFile(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  refuse_unfinished(path);
  std::error_code unknown;
  state_->bytes = std::filesystem::file_size(path, unknown);
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
  std::uint64_t rows = 0;
  int result = sqlite3_step(statement.get());
  for (; result == SQLITE_ROW; result = sqlite3_step(statement.get())) {
    visit(row);
    state_->check_proportion(++rows, row, table);
  }
  if (result != SQLITE_DONE) state_->fail();
}

}  // namespace spillway::traces
