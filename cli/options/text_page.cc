#include "cli/options/text_page.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace spillway::cli {
namespace {

constexpr std::size_t least = 40, most = 100, elsewhere = 80;

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

}  // namespace

namespace {

// Whoever reads a pipe may say its width.
std::size_t told_columns() {
  const char* const told = std::getenv("COLUMNS");
  const long columns = told == nullptr ? 0 : std::strtol(told, nullptr, 10);
  return columns > 0 ? static_cast<std::size_t>(columns) : 0;
}

std::size_t terminal_width(std::size_t otherwise) {
  winsize size{};
  const bool is_terminal = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  const std::size_t columns = is_terminal && size.ws_col > 0 ? size.ws_col : told_columns();
  return columns > 0 ? std::clamp(columns, least, most) : otherwise;
}

}  // namespace

std::size_t page_width() { return terminal_width(elsewhere); }
std::size_t table_width() { return terminal_width(most); }

std::size_t shown_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

std::string elided(std::string_view text, std::size_t width, bool keeps_end) {
  if (shown_width(text) <= width) return std::string(text);
  const std::size_t shown = keeps_end ? shown_width(text) - (width - 3) : width - 3;  // characters before the cut
  std::size_t at = 0, passed = 0;
  for (; at < text.size(); ++at) {
    if (continues(text[at])) continue;
    if (passed == shown) break;
    ++passed;
  }
  return keeps_end ? "..." + std::string(text.substr(at)) : std::string(text.substr(0, at)) + "...";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  // Spaces that stand before a word go with it, but at the beginning of a new line.
  std::vector<std::string> lines(1);
  std::size_t used = 0;  // of the line
  bool has_word = false;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(' ', from), text.size());
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view gap = text.substr(from, begin - from), word = text.substr(begin, end - begin);
    if (has_word && used + gap.size() + shown_width(word) > width) {
      lines.emplace_back(indent, ' ');
      used = indent;
    } else {
      lines.back() += gap;
      used += gap.size();
    }
    lines.back() += word;
    used += shown_width(word);
    has_word = true;
    from = end;
  }
  return lines;
}

std::string paragraph(std::string_view text, std::size_t width, std::size_t indent) {
  std::string all;
  for (const std::string& line : wrapped(text, width, indent)) all += line + "\n";
  return all;
}

std::string paragraphs(std::string_view text, std::size_t width, std::size_t indent) {
  std::string all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    all += end == 0 ? "\n" : paragraph(text.substr(0, end), width, indent);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

}  // namespace spillway::cli
