#include <toml++/toml.h>

#include <sstream>

#include "base/input_error.h"
#include "scenario/launch/launch_setting.h"

namespace spillway::scenario {
namespace {

std::string text_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  std::ostringstream out;
  value.visit([&](const auto& node) {
    if constexpr (toml::is_value<decltype(node)>) out << node.get();
  });
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  return out.str();
}

void collect(const toml::node& value, const std::string& name, const std::string& file,
             std::vector<LaunchSetting>& into) {
  if (const toml::table* table = value.as_table()) {
    for (const auto& [key, below] : *table)
      collect(below, name.empty() ? std::string(key.str()) : name + "." + std::string(key.str()), file, into);
    return;
  }
  LaunchSetting made{.name = name, .shown = name, .file = file};
  made.place = "line " + std::to_string(value.source().begin.line);
  if (const toml::array* list = value.as_array())
    for (const toml::node& item : *list) made.value += (made.value.empty() ? "" : ",") + text_of(item);
  else
    made.value = text_of(value);
  into.push_back(std::move(made));
}

}  // namespace

std::vector<LaunchSetting> toml_settings(const std::string& text, const std::string& file) {
  try {
    const toml::table root = toml::parse(text, file);
    std::vector<LaunchSetting> settings;
    collect(root, "", file, settings);
    return settings;
  } catch (const toml::parse_error& error) {
    throw InputError(file, "line " + std::to_string(error.source().begin.line),
                     "not valid TOML: " + std::string(error.description()), "correct the syntax there");
  }
}

}  // namespace spillway::scenario
