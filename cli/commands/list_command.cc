#include "cli/commands/list_command.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/listed.h"
#include "cli/options/command_options.h"
#include "launch/launch_table.h"
#include "models/spec/model_alias.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup_fields.h"
#include "planners/technique/technique_table.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

// "8.03 B", "124 M", "1030 B"; 999.9 M is 1 B.
std::string parameters_text(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 999.5e9) return fmt::format("{:.0f} B", number * 1e-9);
  return number >= 999.5e6 ? fmt::format("{:.3g} B", number * 1e-9) : fmt::format("{:.3g} M", number * 1e-6);
}

void add_model(Listed& listed, const std::string& name) {
  const ModelSpec model = find_model(name);
  const ParameterCounts counts = parameter_counts(model);
  listed.items.push_back({{"name", name},
                          {"title", model.title},
                          {"parameters", counts.total()},
                          {"active_parameters", counts.active()},
                          {"layers", model.all_layers()},
                          {"hidden", model.hidden},
                          {"heads", model.heads},
                          {"kv_heads", model.kv_heads},
                          {"experts", model.experts.count},
                          {"vocabulary", model.vocabulary},
                          {"max_positions", model.max_positions}});
  listed.table.add({name, parameters_text(counts.total()),
                    model.has_experts() ? parameters_text(counts.active()) : "all", std::to_string(model.all_layers()),
                    std::to_string(model.hidden), std::to_string(model.heads), std::to_string(model.max_positions),
                    model.title});
}

Listed models(bool with_ids) {
  Listed listed{.table = Table({"name", "parameters", "active", "layers", "width", "heads", "longest", "title"})};
  for (const std::string& name : bundled_models()) {
    add_model(listed, name);
    if (!with_ids) continue;
    for (const std::string& id : published_ids(name)) {
      add_model(listed, id);
      listed.items.back()["alias"] = alias_json(*find_alias(id));
    }
  }
  return listed;
}

std::string settings_text(const TechniqueWay& way) {
  std::string text;
  for (const std::string& setting : way.settings) text += (text.empty() ? "" : ", ") + setting;
  return text;
}

Listed all_techniques() {
  Listed listed{.table = Table({"technique", "part", "title", "does", "said by", "source"})};
  for (const Technique& row : techniques()) {
    Json ways = Json::array();
    std::string said;
    for (const TechniqueWay& way : row.ways) {
      ways.push_back({{"name", way.name}, {"about", way.about}, {"settings", way.settings}});
      said += (said.empty() ? "" : "; ") + settings_text(way);
    }
    Json needs = Json::array();
    for (const Capability each : row.needs) needs.push_back(std::string(to_string(each)));
    listed.items.push_back({{"name", row.name},
                            {"title", row.title},
                            {"about", row.about},
                            {"source", row.source},
                            {"part", to_string(row.part)},
                            {"needs", needs},
                            {"ways", ways}});
    listed.table.add({row.name, std::string(to_string(row.part)), row.title, row.about, said, row.source});
  }
  return listed;
}

Listed words(const Words& words) {
  Listed listed{.table = Table({"name", "is", "also called"})};
  for (const Word& word : words) {
    Json item = {{"name", word.name}, {"about", word.about}};
    if (!word.alias.empty()) item["alias"] = word.alias;
    listed.items.push_back(std::move(item));
    listed.table.add({std::string(word.name), std::string(word.about), std::string(word.alias)});
  }
  return listed;
}

Listed flags() {
  Listed listed{.table = Table({"framework", "flag", "effect", "scenario key", "note"})};
  for (const LaunchFlag& row : launch_flags()) {
    const std::string framework(launch_format_words()[row.format].name);
    const std::string effect(to_string(row.role)), key(row.key), note(row.note);
    listed.items.push_back({{"framework", framework},
                            {"flag", row.flag},
                            {"effect", effect},
                            {"key", key},
                            {"values", row.values},
                            {"exported", row.exported},
                            {"note", note}});
    listed.table.add({framework, row.flag, effect, key, note});
  }
  return listed;
}

struct List {
  std::string_view name;
  Listed (*make)(bool all);
};
constexpr std::array<List, 12> lists = {{{"models", models},
                                         {"machines", [](bool) { return list_machines(); }},
                                         {"gpus", [](bool) { return list_gpus(); }},
                                         {"drives", [](bool) { return list_drives(); }},
                                         {"hosts", [](bool) { return list_hosts(); }},
                                         {"networks", [](bool) { return list_networks(); }},
                                         {"techniques", [](bool) { return all_techniques(); }},
                                         {"schedules", [](bool) { return words(schedule_words()); }},
                                         {"allocators", [](bool) { return words(allocator_words()); }},
                                         {"optimizers", [](bool) { return words(optimizer_words()); }},
                                         {"precisions", [](bool) { return words(precision_words()); }},
                                         {"flags", [](bool) { return flags(); }}}};

void print_list(const Context& context, std::string_view name, const Listed& listed) {
  if (!context.json()) return print(context, listed.table);
  Json document = json_document("spillway.list");
  document["list"] = name;
  document["items"] = listed.items;
  document["warnings"] = Json::array();
  return print_json(document);
}

Listed kinds() {
  Listed listed{.table = Table({"list"})};
  for (const List& list : lists) {
    listed.items.push_back({{"name", list.name}});
    listed.table.add({std::string(list.name)});
  }
  return listed;
}

void run_list(const Context& context, std::string_view name, bool all) {
  if (name.empty()) return print_list(context, name, kinds());
  for (const List& list : lists) {
    if (list.name != name) continue;
    if (context.markdown() && name == "flags") return print(launch_markdown());
    return print_list(context, name, list.make(all));
  }
}

}  // namespace

Json alias_json(const ModelAlias& alias) {
  std::vector<std::string> overrides = alias.overrides;
  if (alias.is_nf4) overrides.emplace_back("base_weights=nf4_double");
  return {{"id", alias.id}, {"shape", alias.shape}, {"overrides", overrides}};
}

void add_list_command(Command& app, Context& context) {
  std::vector<std::string> names;
  for (const List& list : lists) names.emplace_back(list.name);
  Command* command = app.add_subcommand("list", "What a scenario can name: models, machines, techniques, ...");
  const auto wanted = std::make_shared<std::string>();
  const auto all = std::make_shared<bool>(false);
  command->add_option("WHAT", *wanted, "what to list (default: these words)")->choices(names);
  command->add_flag("--all", *all, "of models, also the Hugging Face ids with a known shape");
  command->callback([&context, wanted, all] { run_list(context, *wanted, *all); });
}

}  // namespace spillway::cli
