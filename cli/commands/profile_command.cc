#include "cli/commands/profile_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "cli/options/command_options.h"
#include "cli/output/table.h"
#include "hwprofiles/profile_library.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ProfileCall {
  std::string kind, left, right;
  std::vector<std::string> files;
};

// Precondition: kind is empty or one of the known ones.
void run_profile_list(const Context& context, const std::string& kind) {
  constexpr std::array kinds = {ProfileKind::gpu, ProfileKind::nvme, ProfileKind::host, ProfileKind::network,
                                ProfileKind::system};
  std::vector<std::string_view> names;
  for (const ProfileKind known : kinds) names.push_back(profile_kind_name(known));
  if (!kind.empty() && std::find(names.begin(), names.end(), kind) == names.end())
    throw InputError("--kind", "", "no kind of profile is called '" + kind + "'", suggest(kind, names));
  Json document = json_document("spillway.profile_list");
  document["profiles"] = Json::array();
  document["warnings"] = Json::array();
  Table table({"kind", "name", "title"});
  const ProfileLibrary library = ProfileLibrary::standard();
  for (const ProfileEntry& entry : library.list()) {
    const std::string_view name = profile_kind_name(entry.kind);
    if (!kind.empty() && name != kind) continue;
    table.add({std::string(name), entry.name, entry.title});
    document["profiles"].push_back(
        {{"kind", name}, {"name", entry.name}, {"title", entry.title}, {"path", entry.path}});
  }
  context.json() ? print_json(document) : print(context, table);
}

void run_show(const Context& context, const std::string& name) {
  Json document = json_document("spillway.profile");
  document["name"] = name;
  document["values"] = Json::array();
  document["warnings"] = Json::array();
  Table table({"path", "value", "unit", "provenance", "source", "date"});
  for (const ProfileLeaf& leaf : ProfileLibrary::standard().show(name)) {
    const bool sourced = !leaf.origin.source.empty();
    const std::string provenance = sourced ? std::string(provenance_name(leaf.origin.provenance)) : "";
    table.add({leaf.path, leaf.value, leaf.unit, provenance, leaf.origin.source, leaf.origin.date});
    Json value = {{"path", leaf.path},        {"value", leaf.value},          {"unit", leaf.unit},
                  {"provenance", provenance}, {"source", leaf.origin.source}, {"date", leaf.origin.date}};
    if (leaf.origin.spread > 0) value["spread"] = leaf.origin.spread;
    document["values"].push_back(std::move(value));
  }
  context.json() ? print_json(document) : print(context, table);
}

// A profile that can't be used is bad input: exit code 2, after all files were looked at.
void run_profile_check(Context& context, const std::vector<std::string>& files) {
  Json document = json_document("spillway.profile_check");
  document["files"] = Json::array();
  document["warnings"] = Json::array();
  Table table({"file", "problem"});
  const ProfileLibrary library = ProfileLibrary::standard();
  for (const std::string& file : files) {
    const std::vector<std::string> problems = library.check(file);
    for (const std::string& problem : problems) table.add({file, problem});
    document["files"].push_back({{"file", file}, {"sound", problems.empty()}, {"problems", problems}});
    if (!problems.empty()) context.exit_code = exit_bad_input;
  }
  if (context.json())
    print_json(document);
  else if (!table.empty() || context.rows_only())
    print(context, table);
  else
    print(fmt::format("{} profile{} sound\n", files.size(), files.size() == 1 ? "" : "s"));
}

void run_diff(Context& context, const ProfileCall& request) {
  Json document = json_document("spillway.profile_diff");
  document["differences"] = Json::array();
  document["warnings"] = Json::array();
  Table table({"path", request.left, request.right});
  for (const ProfileDifference& difference : ProfileLibrary::standard().diff(request.left, request.right)) {
    table.add({difference.path, difference.left, difference.right});
    document["differences"].push_back(
        {{"path", difference.path}, {"left", difference.left}, {"right", difference.right}});
  }
  if (context.json())
    print_json(document);
  else if (!table.empty() || context.rows_only())
    print(context, table);
  else
    print("no differences\n");
  if (!table.empty()) context.exit_code = exit_answer_is_no;
}

}  // namespace

void add_profile_commands(Command& app, Context& context) {
  Command* group = app.add_subcommand("profile", "Hardware profiles: list, show, check, compare");
  group->require_subcommand();
  const auto request = std::make_shared<ProfileCall>();
  Command* list = group->add_subcommand("list", "Profiles that can be named");
  list->add_option("--kind", request->kind, "only profiles of this kind")->type_name("gpu|nvme|host|network|system");
  list->callback([&context, request] { run_profile_list(context, request->kind); });
  Command* show = group->add_subcommand("show", "Every value with its unit and source");
  show->add_option("NAME", request->left, "name or file of a profile, or a machine as 16xh100")->required();
  show->callback([&context, request] { run_show(context, request->left); });
  Command* check = group->add_subcommand("check", "Every problem of profile files; exit code 2 if there is one");
  check->add_option("FILE", request->files, "profile files")->required();
  check->callback([&context, request] { run_profile_check(context, request->files); });
  Command* diff = group->add_subcommand("diff", "Values that differ; exit code 1 if any does");
  diff->add_option("A", request->left, "name or file of a profile")->required();
  diff->add_option("B", request->right, "another of the same kind")->required();
  diff->callback([&context, request] { run_diff(context, *request); });
}

}  // namespace spillway::cli
