// Interned strings: names repeat thousands of times in a trace, so each is stored once.
//
// Texts lie end to end in blocks that never move; a table of ids with linear probing, at most half full, finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

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
  // Valid as long as the pool, wherever it is moved.
  [[nodiscard]] std::string_view text(StringId id) const;
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  using Block = std::unique_ptr<char[]>;

  [[nodiscard]] std::string_view store(std::string_view text);
  void grow();

  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> hashes_;  // of texts_
  std::vector<std::uint32_t> slots_;   // ids, by hash; 0: free. Their number is a power of two
  std::vector<Block> blocks_, large_;  // of many texts, of one
  std::size_t used_ = 0;               // bytes of the last block
};

}  // namespace spillway
