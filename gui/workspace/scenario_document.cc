#include "gui/workspace/scenario_document.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/read_file.h"
#include "base/shell_word.h"
#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t largest_scenario = 16U << 20U;

std::string trace_scenario(const std::string& path) {
  const nlohmann::ordered_json root = {{"schema", "spillway-scenario"},
                                       {"version", scenario_version},
                                       {"title", fs::path(path).filename().string()},
                                       {"trace", fs::absolute(path).lexically_normal().string()}};
  return root.dump(2) + "\n";
}

}  // namespace

ScenarioDocument ScenarioDocument::open(const std::string& path) {
  if (!is_scenario_file(path)) return {trace_scenario(path), "", fs::absolute(path).parent_path().string()};
  std::string text = read_file(path, largest_scenario);
  const std::string folder = fs::path(path).parent_path().string();
  static_cast<void>(parse_scenario(text, path, folder));  // says what is wrong with it
  return {std::move(text), path, folder};
}

ScenarioDocument::ScenarioDocument(std::string text, std::string file, std::string folder)
    : text_(std::move(text)), file_(std::move(file)), folder_(std::move(folder)), saved_(text_) {
  if (!file_.empty()) on_disk_ = text_;
}

std::string ScenarioDocument::name() const {
  if (!file_.empty()) return file_;
  const std::string trace = value("trace").value_or("");
  return trace.empty() ? "not saved yet" : trace;
}

std::optional<std::string> ScenarioDocument::value(const std::string& key) const { return setting_of(text_, key); }

bool ScenarioDocument::become(std::string text, const std::string& key, bool goes_on) {
  if (text == text_) return false;
  if (!goes_on || dragged_ != key || undone_to_.empty()) {
    ++steps_;
    undone_to_.push_back(text_);
    if (undone_to_.size() > most_steps) undone_to_.erase(undone_to_.begin());
  }
  dragged_ = goes_on ? key : "";
  redone_to_.clear();
  text_ = std::move(text);
  return true;
}

bool ScenarioDocument::set(const std::string& key, const std::string& value, bool goes_on) {
  // As it is already: the layout of the file stays.
  if (this->value(key) == value || (value == "null" && !this->value(key))) return false;
  return become(with_setting(text_, key + "=" + value), key, goes_on);
}

bool ScenarioDocument::replace(const std::string& text) { return become(text, "", false); }

bool ScenarioDocument::undo() {
  if (undone_to_.empty()) return false;
  redone_to_.push_back(std::exchange(text_, std::move(undone_to_.back())));
  undone_to_.pop_back();
  --steps_;
  dragged_.clear();
  return true;
}

bool ScenarioDocument::redo() {
  if (redone_to_.empty()) return false;
  undone_to_.push_back(std::exchange(text_, std::move(redone_to_.back())));
  redone_to_.pop_back();
  ++steps_;
  dragged_.clear();
  return true;
}

void ScenarioDocument::save(const std::string& path) {
  const std::string to = fs::absolute(path).parent_path().string();
  const std::string from = fs::absolute(folder_.empty() ? "." : folder_).lexically_normal().string();
  const std::string moved = from == to ? text_ : moved_scenario(text_, from, to);
  OutputFile out(path);
  out.write(moved);
  out.commit();
  if (moved != text_) {
    // Snapshots are relative to the old folder.
    for (auto* list : {&undone_to_, &redone_to_})
      for (std::string& text : *list) text = moved_scenario(text, from, to);
    text_ = moved;
  }
  file_ = path;
  folder_ = to;
  saved_ = on_disk_ = text_;
}

std::optional<std::string> ScenarioDocument::command() const {
  std::string base = on_disk_, file = file_;
  if (file.empty()) {
    file = value("trace").value_or("");
    if (file.empty()) return std::nullopt;
    if (file.front() != '/') file = (fs::path(folder_) / file).lexically_normal().string();
    base = saved_;
  }
  const auto settings = settings_between(base, text_);
  if (!settings) return std::nullopt;
  std::string command = "spillway run " + shell_word(file);
  for (const std::string& setting : *settings) command += " --set " + shell_word(setting);
  return command;
}

}  // namespace spillway::gui
