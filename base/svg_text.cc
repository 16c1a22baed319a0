#include "base/svg_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace spillway {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view ellipsis = "\xE2\x80\xA6";

// Length of the well-formed UTF-8 sequence at `at`, 0 if there is none or XML 1.0 does not allow the character.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  unsigned code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<unsigned, 5> smallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < smallest[length] || surrogate || code > 0x10FFFF || code == 0xFFFE || code == 0xFFFF ? 0 : length;
}

// In ems; the widest of the common sans-serif fonts.
double character_width(char c) {
  constexpr std::string_view narrow = "ijl.,:;'|!()[]frt -/", wide = "mwMW@%+<=>";
  if (static_cast<unsigned char>(c) >= 0x80) return 1.0;
  if (narrow.find(c) != std::string_view::npos) return 0.42;
  if (wide.find(c) != std::string_view::npos) return 0.97;
  return c >= 'A' && c <= 'Z' ? 0.74 : 0.635;
}

}  // namespace

std::string xml_characters(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    result += length == 0 ? replacement : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string svg_escape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : xml_characters(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (std::size_t i = 0; i < text.size(); i += std::max<std::size_t>(character_length(text, i), 1))
    width += character_width(text[i]) * size;
  return width;
}

std::string fit_text(std::string_view text, double size, double room) {
  if (text_width(text, size) <= room) return std::string(text);
  double width = size;  // the ellipsis
  std::size_t end = 0;
  while (end < text.size()) {
    width += character_width(text[end]) * size;
    if (width > room) break;
    end += std::max<std::size_t>(character_length(text, end), 1);
  }
  return std::string(text.substr(0, end)).append(ellipsis);
}

std::vector<std::string> wrap_text(std::string_view text, double size, double room, std::size_t most_lines) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t space = std::min(text.find_first_of(" \n\t", begin), text.size());
    const std::string_view word = text.substr(begin, space - begin);
    const std::string longer = line.empty() ? std::string(word) : fmt::format("{} {}", line, word);
    if (line.empty() || text_width(longer, size) <= room) {
      line = longer;
    } else if (lines.size() + 1 >= most_lines) {
      lines.push_back(fit_text(fmt::format("{} {}", line, text.substr(begin)), size, room));
      return lines;
    } else {
      lines.push_back(fit_text(line, size, room));
      line = word;
    }
    begin = space + 1;
  }
  if (!line.empty()) lines.push_back(fit_text(line, size, room));
  return lines;
}

}  // namespace spillway
