#include "base/csv_cell.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

namespace spillway {
namespace {

// "-1.5", "+3", "-2e9", "-4.2 %".
bool reads_as_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return error == std::errc() && (rest.empty() || rest == "%" || rest == " %");
}

// Blanks, also a no-break space and a byte order mark, which spreadsheets pass over.
std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks[] = {" ", "\t", "\r", "\n", "\v", "\f", "\xC2\xA0", "\xEF\xBB\xBF"};
  while (true) {
    const auto* found =
        std::find_if(std::begin(blanks), std::end(blanks), [&](auto blank) { return text.starts_with(blank); });
    if (found == std::end(blanks)) return text;
    text.remove_prefix(found->size());
  }
}

bool is_formula(std::string_view text) {
  if (text.size() > 1 && (text.front() == '\t' || text.front() == '\r')) return true;
  const std::string_view shown = without_blanks(text.substr(0, text.find_last_not_of(' ') + 1));
  return shown.size() > 1 && std::string_view("=+-@").find(shown.front()) != std::string_view::npos &&
         !reads_as_number(shown);
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string cell = is_formula(text) ? "'" : "";
  cell += text;
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace spillway
