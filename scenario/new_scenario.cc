#include "scenario/new_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "scenario/scenario_fields.h"

namespace spillway::scenario {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t widest = 110;
constexpr std::int64_t most_tokens = 4096;  // of a sequence, where the model allows more
constexpr std::string_view of_model = "model.";

class ScenarioWriter {
 public:
  explicit ScenarioWriter(const Values& values) : values_(values) {}

  std::string write() {
    comment("A scenario to start from. `spillway run FILE` replays it; --set KEY=VALUE changes a value for one run.");
    comment("Every key: spillway schema scenario --table. Names: spillway list models, machines, techniques, ...");
    text_ += "{";
    indent_ = 1;
    const std::vector<FieldRow> rows = scenario_rows();
    for (const FieldRow& row : rows) {
      if (row.path.find('.') != std::string::npos || row.inside_list) continue;
      if (row.kind == FieldKind::group)
        group(row, rows);
      else if (is_member(row))
        member(row.path, row);
    }
    text_ += "\n}\n";
    return text_;
  }

 private:
  [[nodiscard]] const std::string* given(const std::string& path) const {
    for (const auto& [key, value] : values_)
      if (key == path) return &value;
    return nullptr;
  }
  static bool is_leaf(const FieldRow& row) {
    return row.kind == FieldKind::text || row.kind == FieldKind::flag || row.kind == FieldKind::word ||
           row.kind == FieldKind::word_or_file || row.kind == FieldKind::integer || row.kind == FieldKind::number;
  }
  [[nodiscard]] bool is_member(const FieldRow& row) const {
    const bool is_head = row.path == "schema" || row.path == "version";
    const bool is_main = row.path.starts_with(of_model) && !row.info.label.empty() && !row.otherwise.empty();
    return is_leaf(row) && !row.inside_list && (is_head || is_main || given(row.path) != nullptr);
  }

  void line(const std::string& words) { text_ += "\n" + std::string(2 * indent_, ' ') + words; }

  void comment(std::string_view words) {
    while (!words.empty()) {
      std::size_t end = words.size();
      if (end > widest) end = std::min(words.rfind(' ', widest), words.size());
      const std::string part = "// " + std::string(words.substr(0, end));
      indent_ == 0 ? static_cast<void>(text_ += part + "\n") : line(part);
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }

  void next_member() {
    if (std::exchange(has_member_, true)) text_ += ",";
  }

  void member(const std::string& key, const FieldRow& row) {
    next_member();
    if (!row.info.about.empty() && row.path != "schema" && row.path != "version")
      comment(std::string(row.info.about) + (row.words != nullptr ? " " + row.takes() + "." : ""));
    const std::string* set = given(row.path);
    const std::string& value = set != nullptr ? *set : row.otherwise;
    const bool is_text = row.kind != FieldKind::flag && row.kind != FieldKind::integer && row.kind != FieldKind::number;
    line(nlohmann::json(key).dump() + ": " + (is_text ? nlohmann::json(value).dump() : value));
  }

  // Members, then what else there is.
  void group(const FieldRow& row, const std::vector<FieldRow>& rows) {
    const std::string prefix = row.path + ".";
    std::vector<const FieldRow*> members, others;
    for (const FieldRow& each : rows) {
      const bool is_inside = each.path.starts_with(prefix) && each.path.find('.', prefix.size()) == std::string::npos;
      if (!is_inside || !is_leaf(each) || each.inside_list) continue;
      if (is_member(each))
        members.push_back(&each);
      else if (!each.info.label.empty())
        others.push_back(&each);
    }
    if (members.empty() && others.empty()) return;
    next_member();
    comment(row.info.about);
    line(nlohmann::json(row.path).dump() + ": {");
    ++indent_;
    has_member_ = false;
    for (const FieldRow* each : others) {
      const std::string otherwise = each->otherwise.empty() ? "" : " (" + each->otherwise + ")";
      comment(
          fmt::format("{}{}: {}. {}", each->path.substr(prefix.size()), otherwise, each->takes(), each->info.about));
    }
    for (const FieldRow* each : members) member(each->path.substr(prefix.size()), *each);
    --indent_;
    has_member_ = true;
    line("}");
  }

  const Values& values_;
  std::string text_;
  std::size_t indent_ = 0;
  bool has_member_ = false;
};

}  // namespace

std::string commented_scenario(const Values& values) { return ScenarioWriter(values).write(); }

std::string new_scenario_text(const std::string& model, const std::string& machine) {
  const ModelSpec spec = find_model(model);
  const HardwareProfile hardware = ProfileLibrary::shared().load_system(machine);
  Values values = {{"title", fmt::format("{} on {}", spec.title, hardware.title)},
                   {"model.name", model},
                   {"model.sequence", std::to_string(std::min(spec.max_positions, most_tokens))},
                   {"hardware.profile", machine}};
  if (hardware.total_gpus() > 1) values.emplace_back("model.data_parallel", std::to_string(hardware.total_gpus()));
  return commented_scenario(values);
}

}  // namespace spillway::scenario
