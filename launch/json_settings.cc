#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "launch/launch_setting.h"

namespace spillway::launch {
namespace {

using Json = nlohmann::ordered_json;

std::string json_text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void collect_json(const Json& value, const std::string& name, const std::string& place, TextBudget& budget,
                  std::vector<LaunchSetting>& into) {
  budget.spend(name.size() + place.size(), place);
  if (value.is_object() && (!value.empty() || name.empty())) {
    for (const auto& [key, below] : value.items())
      collect_json(below, name.empty() ? key : fmt::format("{}.{}", name, key), fmt::format("{}/{}", place, key),
                   budget, into);
    return;
  }
  LaunchSetting made{.name = name, .shown = name, .file = budget.file(), .place = place};
  made.is_null = value.is_null();
  if (value.is_array())
    for (const Json& item : value) made.value += (made.value.empty() ? "" : ",") + json_text(item);
  else
    made.value = json_text(value);
  budget.spend(letters_of(made), place);
  into.push_back(std::move(made));
}

}  // namespace

std::vector<LaunchSetting> json_settings(const std::string& text, TextBudget& budget) {
  const std::string& file = budget.file();
  const Json root = parse_document(text, file);
  if (!root.is_object()) throw InputError(file, "/", "not an object", "give a file of keys and values");
  if (document_schema(text).starts_with("spillway"))
    throw InputError(file, "/schema", "is a file of spillway's own, no launch", "give the framework's file");
  std::vector<LaunchSetting> settings;
  collect_json(root, "", "", budget, settings);
  return settings;
}

}  // namespace spillway::launch
