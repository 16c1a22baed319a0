// Editing scenarios as text: what --set does, and what tells two of them apart.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/commented_document.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/text_budget.h"
#include "scenario/scenario_fields.h"
#include "scenario/scenario_setting.h"

namespace spillway::scenario {
namespace {

using Json = nlohmann::ordered_json;

const std::string fixed = "hardware.set.";

Json parsed_scenario(const std::string& text) {
  Json root = parse_commented_document(text, "", "a scenario is a JSON object");  // comments go
  if (!root.is_object()) throw InputError("", "", "not valid JSON", "a scenario is a JSON object");
  return root;
}

// Leaves by path; objects are walked, everything else counts as one.
void edited_leaves(const Json& object, const std::string& path, std::map<std::string, Json>& into) {
  for (const auto& [key, value] : object.items()) {
    const std::string place = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (value.is_object() && !value.empty())
      edited_leaves(value, place, into);
    else if (!value.is_object())
      into[place] = value;
  }
}

// As a value behind KEY=: texts without quotes where they can't be taken for anything else.
std::string value_text(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  const Json again = Json::parse(text, nullptr, false);
  return again.is_discarded() || again.is_object() || again.is_array() ? text : value.dump();
}

void drop_empty(Json& object) {
  for (auto member = object.begin(); member != object.end();) {
    if (member->is_object()) drop_empty(*member);
    if (member->is_object() && member->empty())
      member = object.erase(member);
    else
      ++member;
  }
}

// The names that lead to a key's value, from the outside in; what is below hardware.set has dots in its own.
std::vector<std::string> names_of(const std::string& key) {
  std::vector<std::string> names;
  std::size_t from = 0;
  for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', from)) {
    if (from == fixed.size() && key.starts_with(fixed)) break;
    names.push_back(key.substr(from, dot - from));
    from = dot + 1;
  }
  names.push_back(key.substr(from));
  return names;
}

bool contains(const Json& root, const std::string& key) {
  const Json* at = &root;
  for (const std::string& name : names_of(key)) {
    if (!at->contains(name)) return false;
    at = &(*at)[name];
  }
  return true;
}

// What takes a key out must name one, as what sets it must: a key of scenarios, or a section.
void check_taken_out(const Json& root, const std::string& key, const std::string& setting) {
  static const std::vector<std::string> known = scenario_keys();
  const auto names = [&](const std::string& each) { return each == key || each.starts_with(key + "."); };
  if (contains(root, key) || std::any_of(known.begin(), known.end(), names)) return;
  throw InputError("--set", setting, "no key '" + key + "' in a scenario",
                   suggest_key(key, known, "see docs/reference/scenarios.md"));
}

bool is_path(const Json& value, bool only_with_slash) {
  if (!value.is_string()) return false;
  const auto text = value.get<std::string>();
  if (text.empty() || text.front() == '/') return false;
  return !only_with_slash || names_file(text);
}

}  // namespace

std::string whole_key(const std::string& key) {
  static const std::vector<std::string> known = scenario_keys();
  if (key.find('.') != std::string::npos || std::binary_search(known.begin(), known.end(), key)) return key;
  std::vector<std::string> found, of_questions;
  for (const std::string& each : known) {
    const bool is_question = each.starts_with("capacity.") || each.starts_with("procurement.");
    if (each.ends_with("." + key)) (is_question ? of_questions : found).push_back(each);
  }
  if (found.empty()) found = std::move(of_questions);
  if (found.size() > 1)
    throw InputError("--set", key, "is a key of several sections",
                     fmt::format("write one of {}", fmt::join(found, ", ")));
  return found.empty() ? key : found.front();
}

void apply_setting(Json& root, const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    throw InputError("--set", setting, "expected KEY=VALUE", "for example --set model.sequence=4096");
  std::string key = whole_key(setting.substr(0, equals));
  if (key == "memory.capacity") key += "_bytes";  // with a unit it needs none in its name
  if (std::count(key.begin(), key.end(), '.') > deepest_nesting)
    throw InputError("--set", setting, "nested too deeply", "see docs/schemas/scenario.schema.json");
  const std::string value = setting.substr(equals + 1);
  Json parsed = Json::parse(value, nullptr, false);
  if (parsed.is_discarded() || parsed.is_object() || parsed.is_array()) parsed = value;
  if (parsed.is_null()) check_taken_out(root, key, setting);
  std::vector<std::string> names = names_of(key);
  const std::string last = std::move(names.back());
  names.pop_back();
  Json* at = &root;
  for (const std::string& name : names) {
    if (parsed.is_null() && !at->contains(name)) return;  // not there to be taken out
    Json& child = (*at)[name];
    if (!child.is_object() && !child.is_null())
      throw InputError("--set", setting, "'" + name + "' has no parts", "see docs/schemas/scenario.schema.json");
    at = &child;
  }
  if (parsed.is_null())
    at->erase(last);
  else
    (*at)[last] = parsed;
}

std::string with_setting(const std::string& text, const std::string& setting) {
  Json root = parsed_scenario(text);
  apply_setting(root, setting);
  drop_empty(root);
  return root.dump(2) + "\n";
}

std::optional<std::vector<std::string>> settings_between(const std::string& from, const std::string& to) {
  std::map<std::string, Json> before, after;
  edited_leaves(parsed_scenario(from), "", before);
  edited_leaves(parsed_scenario(to), "", after);
  std::vector<std::string> settings;
  for (const auto& [key, value] : after) {
    const auto old = before.find(key);
    if (old != before.end() && old->second == value) continue;
    if (value.is_array()) return std::nullopt;
    settings.push_back(key + "=" + value_text(value));
  }
  for (const auto& [key, value] : before)
    if (after.find(key) == after.end()) settings.push_back(key + "=null");
  return settings;
}

std::optional<std::string> setting_of(const std::string& text, const std::string& key) {
  std::map<std::string, Json> leaves;
  edited_leaves(parsed_scenario(text), "", leaves);
  const auto found = leaves.find(key);
  if (found == leaves.end()) return std::nullopt;
  return found->second.is_string() ? found->second.get<std::string>() : found->second.dump();
}

std::string moved_scenario(const std::string& text, const std::string& from_folder, const std::string& to_folder) {
  namespace fs = std::filesystem;
  const auto whole_path = [](const std::string& folder) { return fs::absolute(folder.empty() ? "." : folder); };
  Json root = parsed_scenario(text);
  for (const FieldRow& row : scenario_rows()) {
    if (row.info.path == FieldPath::none) continue;
    std::string pointer = "/" + row.path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const Json::json_pointer at(pointer);
    const bool may_be_name = row.info.path == FieldPath::name_or_file;
    if (!root.contains(at) || !is_path(root[at], may_be_name)) continue;
    const auto name = root[at].get<std::string>();
    const std::string from = whole_path(from_folder).string();
    const std::string whole = may_be_name ? name_seen_from(from, name) : (fs::path(from) / name).string();
    root[at] =
        whole.front() != '/'
            ? whole
            : fs::path(whole).lexically_normal().lexically_relative(whole_path(to_folder).lexically_normal()).string();
  }
  const Json same = parsed_scenario(text);
  return root == same ? text : root.dump(2) + "\n";
}

}  // namespace spillway::scenario
