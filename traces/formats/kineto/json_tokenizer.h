// A JSON text seen through a moving window, and the few scans a trace reader needs on it.
//
//   file  ........[ consumed | token being read | not yet seen ][padding].........
//                 ^buffer    ^keep                            ^end
//
// Scans take a pointer into the window and return the position after what they read, or nullptr when the window ended
// first. The caller then refills, keeping the token's start, and reads the token again. Scans never read further than
// `padding_bytes` past the end. Memory: one window of 1 MiB, which grows only when a single token is longer than that
// (up to `max_token_bytes`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace spillway::traces {

class JsonWindow {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
  static constexpr std::size_t padding_bytes = 64;
  static constexpr std::size_t max_token_bytes = std::size_t{64} << 20;

  explicit JsonWindow(ByteSource& source);
  JsonWindow(const JsonWindow&) = delete;
  JsonWindow& operator=(const JsonWindow&) = delete;

  enum class Refill : std::uint8_t { more, ended, too_long };
  // Drops what lies before `keep` and reads on; `keep` is updated to its new place.
  Refill refill(const char*& keep);

  [[nodiscard]] const char* begin() const { return buffer_.data(); }
  [[nodiscard]] const char* end() const { return end_; }
  // Offset of a position of the window in the (decompressed) input.
  [[nodiscard]] std::uint64_t offset(const char* at) const {
    return window_offset_ + static_cast<std::uint64_t>(at - buffer_.data());
  }

 private:
  ByteSource& source_;
  std::vector<char> buffer_;
  const char* end_ = nullptr;
  std::uint64_t window_offset_ = 0;
};

namespace json {

inline const char* skip_space(const char* at, const char* end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) ++at;
  return at;
}

// `at` is behind the opening quote; returns the position of the closing quote. Control characters and any
// bytes are accepted; `escaped` tells whether there was a backslash.
const char* find_quote(const char* at, const char* end, bool& escaped);

// `at` is inside an object of which `depth` braces are open; returns the position behind the brace that closes them.
const char* skip_braces(const char* at, const char* end, int depth);

// Behind the value (of any kind) that starts at `at`. A scalar ends at ',', '}', ']' or space.
const char* skip_value(const char* at, const char* end);

// Text of a JSON string with its escapes resolved; malformed escapes are kept as they are.
std::string unescape(std::string_view raw);

// Integers as the profilers write them: decimal, signed or unsigned 64 bit, also as a decimal fraction.
// false: not a number. Beyond int64 (a fallback through double), `value` saturates and `exact` is false.
struct Integer {
  std::int64_t value = 0;
  bool exact = true;
};
bool parse_integer(std::string_view text, Integer& result);

// "1712195495519689.813" microseconds as whole microseconds and the rest in picoseconds (0 to 999,999; more
// digits are dropped). false: not a finite number, or beyond int64.
struct Micros {
  std::int64_t whole = 0;
  std::int64_t picos = 0;
};
bool parse_micros(std::string_view text, Micros& result);

}  // namespace json
}  // namespace spillway::traces
