#include <yaml-cpp/yaml.h>

#include <set>

#include "base/input_error.h"
#include "scenario/launch/launch_setting.h"

namespace spillway::scenario {
namespace {

constexpr int deepest = 64;
constexpr int most_lists = 10'000;  // aliases can make many of a few

class YamlReader {
 public:
  explicit YamlReader(const std::string& file) : file_(file) {}

  void collect(const YAML::Node& node, const std::string& name, int depth) {
    if (depth > deepest || settings_.size() > 100'000) fail(node, "nested too deeply or too long", "flatten it");
    if (node.IsMap()) {
      std::set<std::string> keys;
      for (const auto& member : node) {
        if (!member.first.IsScalar()) fail(member.first, "a key that is no text", "name each key");
        const std::string& key = member.first.Scalar();
        if (!keys.insert(key).second) fail(member.first, "'" + key + "' is given twice", "leave one");
        collect(member.second, name.empty() ? key : name + "." + key, depth + 1);
      }
      return;
    }
    LaunchSetting made{.name = name, .shown = name, .file = file_, .place = place_of(node)};
    made.is_null = node.IsNull();
    made.value = node.IsSequence() ? listed(node, depth) : made.is_null ? "null" : node.Scalar();
    settings_.push_back(std::move(made));
  }

  std::vector<LaunchSetting> take() { return std::move(settings_); }

 private:
  std::string listed(const YAML::Node& list, int depth) {
    if (depth > deepest || ++lists_ > most_lists) fail(list, "nested too deeply or too long", "flatten it");
    std::string text;
    for (const YAML::Node& item : list) {
      if (!text.empty()) text += ",";
      if (item.IsScalar()) {
        text += item.Scalar();
      } else if (item.IsSequence()) {
        text += listed(item, depth + 1);
      } else if (item.IsMap()) {
        text += "{...}";
      }
    }
    return text;
  }

  static std::string place_of(const YAML::Node& node) { return "line " + std::to_string(node.Mark().line + 1); }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, place_of(node), cause, remedy);
  }

  const std::string& file_;
  int lists_ = 0;
  std::vector<LaunchSetting> settings_;
};

}  // namespace

std::vector<LaunchSetting> yaml_settings(const std::string& text, const std::string& file) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) throw InputError(file, "line 1", "no keys and values", "give a YAML file with a mapping");
    YamlReader reader(file);
    reader.collect(root, "", 0);
    return reader.take();
  } catch (const YAML::Exception& error) {
    throw InputError(file, "line " + std::to_string(error.mark.line + 1), "not valid YAML: " + error.msg,
                     "correct the syntax there");
  }
}

}  // namespace spillway::scenario
