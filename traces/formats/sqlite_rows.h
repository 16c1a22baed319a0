// Reading an SQLite file that may lack tables and columns. Includes no SQLite header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::traces {

// The present row of a table; columns by their place in the list asked for.
class SqliteRow {
 public:
  virtual ~SqliteRow() = default;
  // Nothing for NULL, a missing column, or a value that is no integer.
  [[nodiscard]] virtual std::optional<std::int64_t> integer(std::size_t column) const = 0;
  [[nodiscard]] virtual std::string_view text(std::size_t column) const = 0;
};

class SqliteFile {
 public:
  // Read-only, without journal or lock files; refused where rows lie in a write-ahead log or a journal beside it, which
  // would go unseen. Throws InputError.
  explicit SqliteFile(const std::string& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  [[nodiscard]] bool has_table(const std::string& table) const;
  // Every row of the table in file order, with the columns that exist; none if there is no such table. Throws
  // InputError when the file is damaged, or its pages share others, so that there are more rows or letters than fit.
  void for_rows(const std::string& table, const std::vector<std::string>& columns,
                const std::function<void(const SqliteRow&)>& visit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::traces
