#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <set>
#include <sstream>

#include "base/input_error.h"
#include "launch/launch_setting.h"

namespace spillway::launch {
namespace {

constexpr std::size_t node_letters = 96;   // that a node of the document costs beside its own
constexpr std::size_t visit_letters = 16;  // that a node costs each time it is looked at: aliases name one many times

std::int64_t line_of(const YAML::Mark& mark) { return mark.line + 1; }

// What a document takes, before one is made of it.
class YamlBounds : public YAML::EventHandler {
 public:
  explicit YamlBounds(TextBudget& budget) : budget_(budget) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { count(mark, 0); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { count(mark, 0); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    count(mark, tag.size() + value.size());
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag.size());
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag.size());
  }
  void OnMapEnd() override { --depth_; }

 private:
  void count(const YAML::Mark& mark, std::size_t letters) { budget_.spend(node_letters + letters, line_of(mark)); }
  void open(const YAML::Mark& mark, std::size_t letters) {
    budget_.check_depth(++depth_, line_of(mark));
    count(mark, letters);
  }

  TextBudget& budget_;
  int depth_ = 0;
};

class YamlReader {
 public:
  explicit YamlReader(TextBudget& budget) : budget_(budget) {}

  void collect(const YAML::Node& node, const std::string& name) {
    const TextBudget::Level level(budget_, line_of(node.Mark()));
    budget_.spend(visit_letters + name.size(), line_of(node.Mark()));
    if (node.IsMap()) {
      std::set<std::string> keys;
      for (const auto& member : node) {
        if (!member.first.IsScalar()) fail(member.first, "a key that is no text", "name each key");
        const std::string& key = member.first.Scalar();
        budget_.spend(visit_letters + key.size(), line_of(member.first.Mark()));
        if (!keys.insert(key).second) fail(member.first, "'" + key + "' is given twice", "leave one");
        collect(member.second, name.empty() ? key : fmt::format("{}.{}", name, key));
      }
      return;
    }
    LaunchSetting made{.name = name, .shown = name, .file = budget_.file(), .place = place_of(node)};
    made.is_null = node.IsNull();
    made.value = made.is_null ? "null" : shown(node);
    budget_.spend(letters_of(made), line_of(node.Mark()));
    settings_.push_back(std::move(made));
  }

  std::vector<LaunchSetting> take() { return std::move(settings_); }

 private:
  // Items of a list between commas, what is in them in braces.
  std::string shown(const YAML::Node& node) {
    const TextBudget::Level level(budget_, line_of(node.Mark()));
    std::string text;
    const auto add = [&](const std::string& part) {
      budget_.spend(visit_letters + part.size(), line_of(node.Mark()));
      text.append(text.empty() ? "" : ",").append(part);
    };
    if (node.IsScalar()) add(node.Scalar());
    if (node.IsSequence())
      for (const YAML::Node& item : node) add(item.IsMap() ? "{" + shown(item) + "}" : shown(item));
    if (node.IsMap())
      for (const auto& member : node) add(shown(member.first) + ": " + shown(member.second));
    return text;
  }

  static std::string place_of(const YAML::Node& node) { return "line " + std::to_string(line_of(node.Mark())); }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& cause, const std::string& remedy) const {
    throw InputError(budget_.file(), place_of(node), cause, remedy);
  }

  TextBudget& budget_;
  std::vector<LaunchSetting> settings_;
};

}  // namespace

std::vector<LaunchSetting> yaml_settings(const std::string& text, TextBudget& budget) {
  try {
    std::istringstream stream(text);
    YamlBounds bounds(budget);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(bounds)) continue;
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    if (!root.IsMap())
      throw InputError(budget.file(), "line 1", "no keys and values", "give a YAML file with a mapping");
    YamlReader reader(budget);
    reader.collect(root, "");
    for (std::size_t i = 1; i < documents.size(); ++i)
      if (!documents[i].IsNull()) reader.collect(documents[i], "---");  // nobody's
    return reader.take();
  } catch (const YAML::Exception& error) {
    throw InputError(budget.file(), "line " + std::to_string(line_of(error.mark)), "not valid YAML: " + error.msg,
                     "correct the syntax there");
  }
}

}  // namespace spillway::launch
