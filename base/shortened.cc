#include "base/shortened.h"

#include <algorithm>

namespace spillway {
namespace {

constexpr std::size_t longest_word = 240;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

// The first two thirds and the last third of what may stay.
std::string without_middle(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t head = most / 3 * 2, tail = text.size() - most / 3;
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + "..." + std::string(text.substr(tail));
}

}  // namespace

std::string shortened(std::string_view text, std::size_t most) {
  constexpr std::string_view blanks = " \t\n";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    result += without_middle(text.substr(at, end - at), longest_word);
    at = std::min(text.find_first_not_of(blanks, end), text.size());
    result += text.substr(end, at - end);
  }
  return without_middle(result, most);
}

}  // namespace spillway
