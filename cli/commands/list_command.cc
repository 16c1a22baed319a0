#include "cli/commands/list_command.h"

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/command_options.h"
#include "cli/output/table.h"
#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "planners/technique/technique_table.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Listed {
  Json items = Json::array();
  Table table;
};

Listed models() {
  Listed listed{.table = Table({"model", "title"})};
  for (const std::string& name : bundled_models()) {
    const std::string title = find_model(name).title;
    listed.items.push_back({{"name", name}, {"title", title}});
    listed.table.add({name, title});
  }
  return listed;
}

Listed profiles(ProfileKind kind) {
  Listed listed{.table = Table({"name", "title"})};
  const ProfileLibrary library = ProfileLibrary::standard();
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != kind) continue;
    listed.items.push_back({{"name", entry.name}, {"title", entry.title}});
    listed.table.add({entry.name, entry.title});
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
  Listed listed{.table = Table({"name", "is"})};
  for (const Word& word : words) {
    Json item = {{"name", word.name}, {"about", word.about}};
    if (!word.alias.empty()) item["alias"] = word.alias;
    listed.items.push_back(std::move(item));
    listed.table.add({std::string(word.name), std::string(word.about)});
  }
  return listed;
}

struct List {
  std::string_view name;
  Listed (*make)();
};
constexpr std::array<List, 7> lists = {{{"models", models},
                                        {"machines", [] { return profiles(ProfileKind::system); }},
                                        {"gpus", [] { return profiles(ProfileKind::gpu); }},
                                        {"drives", [] { return profiles(ProfileKind::nvme); }},
                                        {"techniques", all_techniques},
                                        {"schedules", [] { return words(schedule_words()); }},
                                        {"allocators", [] { return words(allocator_words()); }}}};

void run_list(const Context& context, std::string_view name) {
  for (const List& list : lists) {
    if (list.name != name) continue;
    const Listed listed = list.make();
    if (!context.json()) return print(context, listed.table);
    Json document = json_document("spillway.list");
    document["list"] = name;
    document["items"] = listed.items;
    document["warnings"] = Json::array();
    return print_json(document);
  }
}

}  // namespace

void add_list_command(Command& app, Context& context) {
  std::vector<std::string> names;
  std::string type;
  for (const List& list : lists) {
    names.emplace_back(list.name);
    type += (type.empty() ? "" : "|") + names.back();
  }
  Command* command = app.add_subcommand("list", "What a scenario can name: models, machines, techniques, ...");
  const auto wanted = std::make_shared<std::string>();
  command->add_option("WHAT", *wanted, "what to list: " + type)->required()->choices(names);
  command->callback([&context, wanted] { run_list(context, *wanted); });
}

}  // namespace spillway::cli
