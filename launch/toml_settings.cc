#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "launch/launch_setting.h"

namespace spillway::launch {
namespace {

// How deep a text goes, before it is parsed: the library takes its tables apart by recursion, and bounds brackets
// alone, not the names with dots within them. Counts a dot of a number as one of a name.
class TomlDepth {
 public:
  TomlDepth(std::string_view text, const TextBudget& budget) : text_(text), budget_(budget) {}

  void check() {
    while (at_ < text_.size()) step();
  }

 private:
  void step() {
    const char letter = text_[at_];
    if (letter == '"' || letter == '\'') return pass_text(letter);
    ++at_;
    switch (letter) {
      case '\n':
        if (open_.empty() && is_header_) header_ = dots_;
        is_header_ = false;
        is_line_begun_ = false;
        dots_ = 0;
        ++line_;
        return;
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      case '[':
      case '{':
        if (open_.empty() && !is_line_begun_) begin_header();
        open_.push_back(std::exchange(dots_, 0));
        within_ += open_.back() + 1;
        break;
      case ']':
      case '}':
        if (open_.empty()) break;
        within_ -= open_.back() + 1;
        dots_ = std::max(std::exchange(open_.back(), 0), is_header_ ? dots_ : 0);
        open_.pop_back();
        break;
      case ',':
        dots_ = 0;
        break;
      case '.':
        ++dots_;
        break;
      default:
        break;
    }
    if (letter != ' ' && letter != '\t') is_line_begun_ = true;
    budget_.check_depth(header_ + within_ + dots_, line_);
  }

  void begin_header() {
    is_header_ = true;
    header_ = 0;
  }

  // Between quotes, or three of them.
  void pass_text(char quote) {
    is_line_begun_ = true;
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    const std::string_view end = is_long ? std::string_view(three) : std::string_view(three).substr(2);
    for (at_ += end.size(); at_ < text_.size() && !text_.substr(at_).starts_with(end); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\\' && quote == '"') ++at_;
    }
    at_ = std::min(at_ + end.size(), text_.size());
    while (is_long && at_ < text_.size() && text_[at_] == quote) ++at_;  // up to two may stand before the end
  }

  std::string_view text_;
  const TextBudget& budget_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool is_line_begun_ = false, is_header_ = false;
  int header_ = 0, within_ = 0, dots_ = 0;  // levels of the section, of what is open, of the name that is being read
  std::vector<int> open_;                   // brackets: the dots before each
};

std::string toml_text(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  std::ostringstream out;
  value.visit([&](const auto& node) {
    if constexpr (toml::is_value<decltype(node)>) out << node.get();
  });
  if (const auto* flag = value.as_boolean()) return flag->get() ? "true" : "false";
  return out.str();
}

void collect_toml(const toml::node& value, const std::string& name, TextBudget& budget,
                  std::vector<LaunchSetting>& into) {
  const auto line = static_cast<std::int64_t>(value.source().begin.line);
  if (const toml::table* table = value.as_table()) {
    for (const auto& [key, below] : *table) {
      budget.spend(name.size() + key.str().size(), line);
      collect_toml(below, name.empty() ? std::string(key.str()) : name + "." + std::string(key.str()), budget, into);
    }
    return;
  }
  LaunchSetting made{.name = name, .shown = name, .file = budget.file()};
  made.place = "line " + std::to_string(line);
  if (const toml::array* list = value.as_array())
    for (const toml::node& item : *list) made.value += (made.value.empty() ? "" : ",") + toml_text(item);
  else
    made.value = toml_text(value);
  budget.spend(letters_of(made), line);
  into.push_back(std::move(made));
}

}  // namespace

std::vector<LaunchSetting> toml_settings(const std::string& text, TextBudget& budget) {
  TomlDepth(text, budget).check();
  try {
    const toml::table root = toml::parse(text, budget.file());
    std::vector<LaunchSetting> settings;
    collect_toml(root, "", budget, settings);
    return settings;
  } catch (const toml::parse_error& error) {
    throw InputError(budget.file(), "line " + std::to_string(error.source().begin.line),
                     "not valid TOML: " + std::string(error.description()), "correct the syntax there");
  }
}

}  // namespace spillway::launch
