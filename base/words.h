// A list of words that a field takes, with what each one means and how else it may be spelt.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace spillway {

struct Word {
  std::string_view name, about{};
  std::string_view alias{};  // an older spelling; empty: none
};

// In the order of the enum they stand for, where there is one. The texts must outlive the list.
class Words {
 public:
  Words(std::initializer_list<Word> words) : words_(words) {}
  explicit Words(std::vector<Word> words) : words_(std::move(words)) {}

  [[nodiscard]] std::size_t size() const { return words_.size(); }
  [[nodiscard]] const Word& operator[](std::size_t place) const { return words_[place]; }
  template <class Enum>
  requires std::is_enum_v<Enum>
  [[nodiscard]] const Word& operator[](Enum value) const { return words_[static_cast<std::size_t>(value)]; }
  [[nodiscard]] auto begin() const { return words_.begin(); }
  [[nodiscard]] auto end() const { return words_.end(); }

  // The place of a name or an alias.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view text) const;
  [[nodiscard]] std::vector<std::string_view> names() const;
  // Names and aliases: all that find() takes.
  [[nodiscard]] std::vector<std::string_view> spellings() const;
  // "a, b, c"
  [[nodiscard]] std::string listed() const;

 private:
  std::vector<Word> words_;
};

}  // namespace spillway
