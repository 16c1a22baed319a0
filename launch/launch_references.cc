#include "launch/launch_references.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace spillway::launch {
namespace {

constexpr int deepest_reference = 8;

class References {
 public:
  References(const std::vector<LaunchSetting>& settings, const ShellValues& given, TextBudget& budget)
      : given_(given), budget_(budget) {
    for (const LaunchSetting& each : settings) values_.emplace(each.name, each.value);
  }

  // Notes the variable that nothing gives in `unknown`.
  std::string resolved(const LaunchSetting& setting, const std::string& value, std::string& unknown, int depth) {
    std::string made;
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t begin = std::min(value.find("${", at), value.size());
      made.append(value, at, begin - at);
      const std::size_t end = value.find('}', begin);
      if (end == std::string::npos) return made.append(value, begin);
      const auto inner = named(setting, value.substr(begin + 2, end - begin - 2), unknown, depth);
      made += inner.value_or(value.substr(begin, end + 1 - begin));
      budget_.spend(made.size(), setting.place);
      at = end + 1;
    }
    return made;
  }

 private:
  std::optional<std::string> named(const LaunchSetting& setting, const std::string& name, std::string& unknown,
                                   int depth) {
    for (const std::string_view mark : {std::string_view("env:"), std::string_view("oc.env:")}) {
      if (!name.starts_with(mark)) continue;
      const std::string rest = name.substr(mark.size());
      const std::size_t comma = rest.find(',');
      if (const auto found = given_.find(rest.substr(0, comma)); found != given_.end()) return found->second;
      if (comma != std::string::npos) return rest.substr(comma + 1);
      unknown = rest;
      return std::nullopt;
    }
    if (const std::size_t colon = name.find(':'); colon != std::string::npos && is_variable(name.substr(0, colon))) {
      const auto given = given_.find(name.substr(0, colon));
      return given == given_.end() ? name.substr(colon + 1) : given->second;
    }
    const auto found = values_.find(full_name(setting, name));
    if (found == values_.end() || depth >= deepest_reference) return std::nullopt;
    const std::string value = found->second;
    return resolved(setting, value, unknown, depth + 1);
  }

  // Of the environment, as Primus has it: "${NAME:otherwise}".
  static bool is_variable(const std::string& name) {
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
  }

  // ".x" stands beside the setting, "..x" a level above.
  static std::string full_name(const LaunchSetting& setting, const std::string& name) {
    if (!name.starts_with('.')) return name;
    std::string parent = setting.name;
    std::size_t dots = 0;
    for (; dots < name.size() && name[dots] == '.'; ++dots) {
      const std::size_t dot = parent.rfind('.');
      parent.erase(dot == std::string::npos ? 0 : dot);
    }
    return parent.empty() ? name.substr(dots) : parent + "." + name.substr(dots);
  }

  std::unordered_map<std::string, std::string> values_;
  const ShellValues& given_;
  TextBudget& budget_;
};

}  // namespace

void resolve_references(std::vector<LaunchSetting>& settings, const ShellValues& given, TextBudget& budget) {
  std::optional<References> references;
  for (LaunchSetting& setting : settings) {
    if (setting.value.find("${") == std::string::npos) continue;
    if (!references) references.emplace(settings, given, budget);
    setting.value = references->resolved(setting, setting.value, setting.unknown, 0);
  }
}

}  // namespace spillway::launch
