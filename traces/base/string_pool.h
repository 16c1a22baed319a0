// Interned strings: names repeat thousands of times in a trace, so each is stored once.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace spillway {

// Index into a StringPool; 0 is always the empty string.
enum class StringId : std::uint32_t { empty = 0 };

class StringPool {
 public:
  StringPool();
  StringPool(const StringPool& other);
  StringPool& operator=(const StringPool& other);
  StringPool(StringPool&&) noexcept = default;
  StringPool& operator=(StringPool&&) noexcept = default;

  // Amortised O(length). The same text always gets the same id; ids count up in order of first sight.
  StringId intern(std::string_view text);
  [[nodiscard]] std::string_view text(StringId id) const;
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // stable addresses: the map's keys view into it
  std::unordered_map<std::string_view, std::uint32_t> index_;
};

}  // namespace spillway
