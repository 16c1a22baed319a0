#include "traces/formats/python_values.h"

#include <array>
#include <charconv>

namespace spillway::traces {
namespace {

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool take(std::string_view& text, char wanted) {
  skip_spaces(text);
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

bool take_integer(std::string_view& text, std::int64_t& value) {
  skip_spaces(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Length of the quoted text at the front, quotes included; 0 if it does not end.
std::size_t quoted_length(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == text[0]) {
      return i + 1;
    }
  }
  return 0;
}

bool is_quote(char c) { return c == '\'' || c == '"'; }

// Consumes "[1, 2, 0, 64, 4, 'cuda:0']"; on failure `text` is spent anyhow.
bool take_tensor(std::string_view text, StringPool& strings, TensorValue& value) {
  if (!take(text, '[')) return false;
  std::array<std::int64_t, 5> numbers{};
  for (std::int64_t& number : numbers)
    if (!take_integer(text, number) || !take(text, ',')) return false;
  skip_spaces(text);
  if (text.empty() || !is_quote(text.front())) return false;
  const std::size_t length = quoted_length(text);
  if (length == 0) return false;
  const StringId device = strings.intern(text.substr(1, length - 2));
  text.remove_prefix(length);
  if (!take(text, ']')) return false;
  value = {.tensor = numbers[0],
           .storage = numbers[1],
           .offset = numbers[2],
           .elements = numbers[3],
           .element_bytes = numbers[4],
           .device = device};
  return true;
}

}  // namespace

std::vector<TensorValue> tensors_in_python_text(std::string_view text, StringPool& strings) {
  std::vector<TensorValue> found;
  while (!text.empty()) {
    if (is_quote(text.front())) {
      const std::size_t length = quoted_length(text);
      if (length == 0) break;
      text.remove_prefix(length);
      continue;
    }
    TensorValue value;
    if (text.front() == '[' && take_tensor(text, strings, value)) found.push_back(value);
    text.remove_prefix(1);
  }
  return found;
}

}  // namespace spillway::traces
