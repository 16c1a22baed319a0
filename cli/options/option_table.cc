#include "cli/options/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "scenario/scenario.h"

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
  const std::vector<std::string> keys = scenario_keys();
  for (const std::string& key : keys) {
    const bool has_parts = std::any_of(keys.begin(), keys.end(),
                                       [&key](const std::string& other) { return other.starts_with(key + "."); });
    if (has_parts || key == "schema" || key == "version" || key == "note" || key == "capacity.techniques") continue;
    found.push_back(key + (key == "hardware.set" ? "." : "="));
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

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  entry.about = option.get_description();
  entry.required = option.get_required();
  if (option.get_positional()) {
    entry.names = {option.get_name(true)};
    return entry;
  }
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  if (option.get_items_expected() == 0) return entry;  // a flag
  const std::string type = option.get_type_name();
  entry.value = value_of(type);
  entry.choices = choices_of(type);
  return entry;
}

void add(const CLI::App& app, const std::string& path, std::vector<CommandEntry>& table) {
  CommandEntry entry{.path = path, .about = app.get_description(), .arguments = {}, .options = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? entry.arguments : entry.options).push_back(entry_of(*option));
  const auto shown = app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  for (const CLI::App* command : shown) entry.commands.push_back(command->get_name());
  table.push_back(std::move(entry));
  for (const CLI::App* command : shown)
    add(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), table);
}

}  // namespace

std::vector<CommandEntry> option_table(const CLI::App& app) {
  std::vector<CommandEntry> table;
  add(app, "", table);
  return table;
}

}  // namespace spillway::cli
