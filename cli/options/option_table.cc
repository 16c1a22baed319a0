#include "cli/options/option_table.h"

#include <algorithm>
#include <string_view>

#include "cli/options/command_options.h"
#include "scenario/scenario_fields.h"

namespace spillway::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// What --set can begin with: scenario keys that hold a value, and hardware.set with a path of the profile to follow.
std::vector<std::string> settings() {
  std::vector<std::string> found;
  for (const FieldRow& row : scenario_rows()) {
    const bool has_value = row.kind != FieldKind::group && row.kind != FieldKind::groups && row.kind != FieldKind::list;
    if (!has_value || row.inside_list || row.path == "schema" || row.path == "version" || row.path == "note") continue;
    found.push_back(row.path + (row.kind == FieldKind::map ? "." : "="));
  }
  return found;
}

std::vector<std::string> choices_of(std::string_view type) {
  const auto open = type.find('{'), close = type.find('}');
  if (open != std::string_view::npos && close != std::string_view::npos)
    return split(type.substr(open + 1, close - open - 1), ',');
  if (type.find('|') != std::string_view::npos) return split(type, '|');
  if (type != "KEY=VALUE") return {};
  return settings();
}

// The type's name without what a check of the parser's own adds to it.
std::string value_of(const std::string& type) {
  for (const char* check : {":{", ":POSITIVE", ":NONNEGATIVE"})
    if (const auto at = type.find(check); at != std::string::npos) return type.substr(0, at);
  return type;
}

OptionEntry entry_of(const Option& option) {
  OptionEntry entry;
  entry.names = option.names();
  entry.about = option.about();
  entry.required = option.is_required();
  entry.is_written = option.is_written();
  if (option.is_argument() || option.is_flag()) return entry;
  const std::string type = option.type();
  entry.value = value_of(type);
  entry.choices = choices_of(type);
  return entry;
}

void add(const Command& command, const std::string& path, std::vector<CommandEntry>& table) {
  CommandEntry entry{.path = path,
                     .about = command.about(),
                     .page = command.page(),
                     .examples = command.examples(),
                     .arguments = {},
                     .options = {},
                     .commands = {}};
  for (const Option& option : command.options())
    if (!option.is_hidden()) (option.is_argument() ? entry.arguments : entry.options).push_back(entry_of(option));
  std::vector<const Command*> shown = command.commands();
  std::erase_if(shown, [](const Command* below) { return below->is_hidden(); });
  for (const Command* below : shown) entry.commands.push_back(below->name());
  table.push_back(std::move(entry));
  for (const Command* below : shown) add(*below, path.empty() ? below->name() : path + " " + below->name(), table);
}

}  // namespace

std::vector<CommandEntry> option_table(const Command& app) {
  std::vector<CommandEntry> table;
  add(app, "", table);
  return table;
}

}  // namespace spillway::cli
