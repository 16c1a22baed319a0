// One field of an object by its path and a text, as --set has it; and its value as such a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/field_path.h"

namespace spillway {

// Sets a text, flag, word or number; the check of the object holds ranges. Throws InputError (place: the path)
// for a text that is no value of the field; found() is false where there is no such field.
class FieldSetter final : public PathVisitor {
 public:
  FieldSetter(std::string_view path, std::string_view text) : path_(path), text_(text) {}
  [[nodiscard]] bool found() const { return found_; }

  bool wants(std::string_view key) override;
  void text(const FieldInfo& info, std::optional<std::string>& value) override;
  void flag(const FieldInfo& info, std::optional<bool>& value) override;
  void word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) override;
  void word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) override;
  void integer(const FieldInfo& info, std::optional<std::int64_t>& value) override;
  void number(const FieldInfo& info, std::optional<double>& value) override;
  bool begin_group(const FieldInfo& info) override;
  void end_group() override;

 private:
  [[nodiscard]] bool is_it(const FieldInfo& info);
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy) const;

  std::string_view path_, text_;
  std::size_t depth_ = 0;  // letters of the path that open groups have taken
  bool found_ = false;
};

// Every text, flag, word and number, a semicolon behind each, in the order of the description.
class FieldTexts final : public FieldVisitor {
 public:
  // path: of the one field wanted; empty: all.
  explicit FieldTexts(std::string_view path = {}) : path_(path) {}
  [[nodiscard]] std::string take() { return std::move(texts_); }

  bool wants(std::string_view key) override { return path_.empty() || key == path_; }
  void text(const FieldInfo& info, std::optional<std::string>& value) override;
  void flag(const FieldInfo& info, std::optional<bool>& value) override;
  void word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) override;
  void word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) override;
  void integer(const FieldInfo& info, std::optional<std::int64_t>& value) override;
  void number(const FieldInfo& info, std::optional<double>& value) override;

 private:
  void add(std::string_view text);

  std::string_view path_;
  std::string texts_;
};

}  // namespace spillway
