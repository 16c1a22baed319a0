// The fields of a noun as a list: for completion, forms, tables of the documentation, and for setting one by its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/field_path.h"

namespace spillway {

enum class FieldKind : std::uint8_t {
  text,
  flag,
  word,          // one of `words`
  word_or_file,  // one of them, or a path
  integer,
  number,
  scalar,  // whatever --set takes
  object,  // with keys of another document's
  list,    // of texts, words or numbers
  quantity,
  curve,
  group,   // has fields, which follow
  groups,  // a list of them
  map,     // with keys of the user's own
};

struct FieldRow {
  std::string path;  // "model.sequence"
  FieldKind kind = FieldKind::text;
  FieldInfo info;
  std::string otherwise;         // what counts when it isn't given, as --set takes it; empty: nothing
  const Words* words = nullptr;  // of a word
  bool inside_list = false;      // of a list or a map: --set can't name it
  // "whole number, 1 to 64", "torch, gmlake or ideal": what it takes, for people.
  [[nodiscard]] std::string takes() const;
};

class FieldRows : public PathVisitor {
 public:
  [[nodiscard]] std::vector<FieldRow> take() { return std::move(rows_); }

  void head(const DocumentHead& head) override;
  void constant(const FieldInfo& info, std::string_view text) override;
  void text(const FieldInfo& info, std::optional<std::string>& value) override;
  void flag(const FieldInfo& info, std::optional<bool>& value) override;
  void word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) override;
  void word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) override;
  void integer(const FieldInfo& info, std::optional<std::int64_t>& value) override;
  void number(const FieldInfo& info, std::optional<double>& value) override;
  void hex(const FieldInfo& info, std::optional<std::uint64_t>& value) override;
  void scalar(const FieldInfo& info, std::optional<Scalar>& value) override;
  void object(const FieldInfo& info, std::optional<std::string>& value) override;
  void texts(const FieldInfo& info, std::vector<std::string>& values) override;
  void word_list(const FieldInfo& info, std::vector<std::size_t>& places, const Words& words) override;
  void integers(const FieldInfo& info, std::vector<std::int64_t>& values) override;
  void numbers(const FieldInfo& info, std::vector<double>& values) override;
  void scalars(const FieldInfo& info, std::vector<Scalar>& values) override;
  bool begin_group(const FieldInfo& info) override;
  std::size_t begin_list(const FieldInfo& info, std::size_t current) override;
  void end_list() override;
  std::vector<std::string> begin_map(const FieldInfo& info, std::vector<std::string> current) override;
  void end_map() override;

 protected:
  void add(FieldKind kind, const FieldInfo& info, std::string otherwise = "", const Words* words = nullptr);

 private:
  std::vector<FieldRow> rows_;
  int lists_ = 0;  // open ones, and maps
};

// Rows of an object as it is when nothing is given.
template <class Object>
std::vector<FieldRow> rows_of() {
  Object object;
  FieldRows rows;
  describe(object, rows);
  return rows.take();
}

// A Markdown table: key, what it takes, default, meaning. Rows of groups are left out.
std::string markdown_table(const std::vector<FieldRow>& rows);

}  // namespace spillway
