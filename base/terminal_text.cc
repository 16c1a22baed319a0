#include "base/terminal_text.h"

#include <algorithm>
#include <cstdint>

namespace spillway {
namespace {

bool is_continuation_byte(char c) { return (static_cast<std::uint8_t>(c) & 0xC0U) == 0x80; }

// Bytes that follow the first one of a character.
std::size_t continuations(char first) {
  const auto byte = static_cast<std::uint8_t>(first);
  return byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<std::uint8_t>(text.front());
    const std::size_t more = continuations(text.front());
    const bool is_whole =
        text.size() > more &&
        std::all_of(text.begin() + 1, text.begin() + 1 + static_cast<std::ptrdiff_t>(more), is_continuation_byte);
    const bool is_control = byte < 0x20 ? byte != '\n' && byte != '\t' : byte == 0x7f;
    const bool is_upper_control = byte == 0xC2 && is_whole && static_cast<std::uint8_t>(text[1]) < 0xA0;
    const std::size_t length = is_whole ? more + 1 : 1;
    if (is_control || is_upper_control || !is_whole || (byte >= 0x80 && more == 0))
      result += '?';
    else
      result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace spillway
