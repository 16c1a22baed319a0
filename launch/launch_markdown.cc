// The table of docs/reference/launch-files.md.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "launch/launch_table.h"

namespace spillway::launch {
namespace {

// "true" as it is, "theirs: ours" of words, "number".
std::string values_text(const LaunchFlag& row) {
  if (row.values.empty()) return "text";
  std::string text;
  std::string_view rest = row.values;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = pair.rfind('=');
    const std::string_view theirs = pair.substr(0, equals), ours = pair.substr(equals + 1);
    if (!text.empty()) text += ", ";
    text += pair == "#"      ? "whole number"
            : ours == "-"    ? fmt::format("{}: as without", theirs)
            : theirs == ours ? std::string(theirs)
                             : fmt::format("{}: {}", theirs, ours);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

std::string shown(const LaunchFlag& row) {
  const bool has_dashes = row.format == LaunchFormat::megatron || row.format == LaunchFormat::launcher;
  return has_dashes ? "--" + row.flag : row.flag;
}

void add_table(std::string& page, LaunchFormat format) {
  page += "| Flag or key | Scenario key | Values | Export | Meaning |\n|---|---|---|---|---|\n";
  for (const LaunchFlag& row : launch_flags())
    if (row.format == format && row.role == FlagRole::value)
      page += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", shown(row), row.key, values_text(row),
                          row.exported ? "yes" : "", row.note);
    else if (row.format == format && row.role == FlagRole::file)
      page += fmt::format("| `{}` | | file | | {} |\n", shown(row), row.note);
}

void add_list(std::string& page, LaunchFormat format, FlagRole role, std::string_view title) {
  std::string lines;
  std::string_view reason = "\n";
  for (const LaunchFlag& row : launch_flags()) {
    if (row.format != format || row.role != role) continue;
    if (row.note != reason) {
      lines += fmt::format("{}* {}: ", lines.empty() ? "" : "\n", row.note.empty() ? "as modelled" : row.note);
      reason = row.note;
    } else {
      lines += ", ";
    }
    lines += fmt::format("`{}`", shown(row));
    if (!row.values.empty()) lines += fmt::format(" {}", row.values);
  }
  if (!lines.empty()) page += fmt::format("\n{}\n\n{}\n", title, lines);
}

}  // namespace

std::string launch_markdown() {
  std::string page;
  for (std::size_t i = 0; i < launch_format_words().size(); ++i) {
    const auto format = static_cast<LaunchFormat>(i);
    const Word& word = launch_format_words()[i];
    page += fmt::format("{}### {}: {}\n\n", page.empty() ? "" : "\n", word.name, word.about);
    add_table(page, format);
    add_list(page, format, FlagRole::as_modelled, "As modelled anyway; another value is a warning:");
    add_list(page, format, FlagRole::adds, "Not said in a scenario, and more memory than it counts (`memory+`):");
    add_list(page, format, FlagRole::saves, "Not said, and less memory (`memory-`):");
    add_list(page, format, FlagRole::not_said, "Not said, and other memory (`memory~`):");
    add_list(page, format, FlagRole::time, "Not said, and other time (`time`):");
    add_list(page, format, FlagRole::no_effect, "No effect on a step's memory or time:");
  }
  return page;
}

}  // namespace spillway::launch
