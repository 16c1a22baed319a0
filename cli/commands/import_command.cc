#include "cli/commands/import_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/output_file.h"
#include "base/shell_word.h"
#include "cli/commands/listed.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/text_page.h"
#include "cli/output/table.h"
#include "launch/launch_import.h"
#include "models/spec/model_alias.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ImportCall {
  std::vector<std::string> files, values;
  std::string from, model, machine, output;
  bool is_strict = false;
};

std::string stem_of(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem().string();
  for (const std::string_view ending : {".scenario"})
    if (stem.ends_with(ending)) stem.erase(stem.size() - ending.size());
  return stem;
}

ImportRequest request_of(const ImportCall& request) {
  ImportRequest made{.model = request.model, .machine = request.machine};
  made.launch.paths = request.files;
  if (!request.from.empty()) made.launch.from = static_cast<LaunchFormat>(*launch_format_words().find(request.from));
  for (const std::string& value : request.values) {
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InputError("--env", value, "expected NAME=VALUE", "for example --env NNODES=4");
    made.launch.given[value.substr(0, equals)] = value.substr(equals + 1);
  }
  made.model_file = stem_of(request.output.empty() ? request.files.front() : request.output) + ".model.json";
  return made;
}

Table understood_table(const LaunchImport& import) {
  Table table({"understood", "value", "scenario key", "is"});
  for (const UnderstoodFlag& each : import.understood)
    table.add({each.flag, each.value, each.key.empty() ? "(read)" : each.key, each.set_to});
  return table;
}

Table defaulted_table(const LaunchImport& import) {
  Table table({"defaulted", "value", "why"});
  for (const DefaultedKey& each : import.defaulted) table.add({each.key, each.value, each.why});
  return table;
}

Table ignored_table(const LaunchImport& import) {
  Table table({"ignored", "value", "effect", "reason"});
  for (const IgnoredFlag& each : import.ignored)
    table.add({each.flag, each.value, std::string(to_string(each.kind)), each.reason});
  return table;
}

// Of all three, for spreadsheets.
Table import_table(const LaunchImport& import) {
  Table table({"list", "flag", "value", "scenario key", "is", "reason"});
  for (const UnderstoodFlag& each : import.understood)
    table.add({"understood", each.flag, each.value, each.key, each.set_to, ""});
  for (const DefaultedKey& each : import.defaulted) table.add({"defaulted", "", "", each.key, each.value, each.why});
  for (const IgnoredFlag& each : import.ignored)
    table.add({"ignored", each.flag, each.value, "", "", std::string(to_string(each.kind)) + ": " + each.reason});
  return table;
}

Json lists_of(const LaunchImport& import) {
  Json lists;
  lists["understood"] = Json::array();
  for (const UnderstoodFlag& each : import.understood)
    lists["understood"].push_back({{"flag", each.flag},
                                   {"value", each.value},
                                   {"key", each.key},
                                   {"set_to", each.set_to},
                                   {"file", each.file},
                                   {"place", each.place}});
  lists["defaulted"] = Json::array();
  for (const DefaultedKey& each : import.defaulted)
    lists["defaulted"].push_back({{"key", each.key}, {"value", each.value}, {"why", each.why}});
  lists["ignored"] = Json::array();
  for (const IgnoredFlag& each : import.ignored)
    lists["ignored"].push_back({{"flag", each.flag},
                                {"value", each.value},
                                {"effect", to_string(each.kind)},
                                {"reason", each.reason},
                                {"file", each.file},
                                {"place", each.place}});
  return lists;
}

// The published model that was named, by the launch or with --model.
std::optional<ModelAlias> alias_of(const LaunchImport& import, const std::string& named) {
  std::string name = named;
  for (const UnderstoodFlag& each : import.understood)
    if (name.empty() && each.key == "model.name") name = each.value;
  auto alias = find_alias(name);
  return alias && alias->id != alias->shape ? alias : std::nullopt;
}

void print_import(const LaunchImport& import, const std::string& named) {
  Json document = json_document("spillway.import");
  document["format"] = import.format;
  document["scenario"] = Json::parse(import.scenario);
  if (!import.model.empty()) {
    document["model_file"] = import.model_file;
    document["model"] = Json::parse(import.model);
  } else if (const auto alias = alias_of(import, named)) {
    document["model"] = {{"alias", alias_json(*alias)}};
  }
  document.update(lists_of(import));
  document["unstated"] = Json::array();
  for (const UnstatedKey& each : import.unstated)
    document["unstated"].push_back({{"key", each.key}, {"why", each.why}});
  document["unsayable"] = Json::array();
  for (const scenario::UnsayableFlag& each : import.unsayable)
    document["unsayable"].push_back({{"flag", each.flag},
                                     {"value", each.value},
                                     {"place", each.place},
                                     {"effect", scenario::launch_effect_words()[each.effect].name}});
  document["warnings"] = import.warnings;
  print_json(document);
}

// Both or none: the scenario names the model's file.
void write(const LaunchImport& import, const std::string& output) {
  OutputFile scenario(output);
  scenario.write(import.scenario);
  if (!import.model.empty()) {
    const auto folder = std::filesystem::path(output).parent_path();
    OutputFile model((folder / import.model_file).string());
    model.write(import.model);
    model.commit();
  }
  scenario.commit();
}

Table unstated_table(const LaunchImport& import) {
  Table table({"open", "", "state it"});
  for (const UnstatedKey& each : import.unstated)
    table.add({each.key, each.why,
               each.key == "model.name" ? "--model NAME"
               : each.key == "recipe"   ? "--set its keys, import=null"
                                        : "--set " + each.key + "=.."});
  return table;
}

// What the answer hangs on: an input of the first importance, or a flag of memory.
void refuse_open(const LaunchImport& import, Context& context) {
  for (const scenario::UnsayableFlag& each : import.unsayable)
    if (each.effect == scenario::LaunchEffect::unknown)
      throw InputError(each.place, each.flag, "no flag that is known", "correct it, or import without --strict");
  const bool hangs = std::any_of(import.unsayable.begin(), import.unsayable.end(),
                                 [](const auto& each) { return each.effect != scenario::LaunchEffect::time; });
  if (hangs || !import.unstated.empty()) context.exit_code = exit_not_known;
}

void print_lists(const Context& context, const LaunchImport& import, bool is_result) {
  for (const Table& table :
       {understood_table(import), unstated_table(import), defaulted_table(import), ignored_table(import)}) {
    if (table.empty()) continue;
    if (is_result)
      print(table.text(table_width()) + "\n");
    else
      note(context, table.text(table_width()));
  }
}

void run_import(Context& context, const ImportCall& request) {
  const LaunchImport import = import_launch(request_of(request));
  const bool writes = !request.output.empty() && request.output != "-";
  if (!import.model.empty() && !writes && !context.json())
    throw InputError(request.files.front(), "", "its model is not bundled and needs a model file",
                     "give --output SCENARIO, beside which it is written, or --model NAME");
  if (request.is_strict) refuse_open(import, context);
  for (const std::string& warning : import.warnings) warn(context, warning);
  if (writes) write(import, request.output);
  if (context.json()) return print_import(import, request.model);
  if (context.rows_only()) return print(context, import_table(import));
  print_lists(context, import, writes);
  if (writes)
    print("next: spillway run " + shell_word(request.output) + ", or fit\n");
  else
    print(import.scenario);
}

}  // namespace

void add_import_command(Command& app, Context& context) {
  Command* command = app.add_subcommand("import", "A launch script or configuration of a framework to a scenario");
  const auto request = std::make_shared<ImportCall>();
  std::vector<std::string> formats;
  for (std::size_t i = 0; i < named_launch_formats; ++i) formats.emplace_back(launch_format_words()[i].name);
  command
      ->add_option("LAUNCH", request->files,
                   "shell script or arguments, TOML, JSON or YAML of Megatron-LM, torchtitan, DeepSpeed, accelerate, "
                   "Hugging Face or nanotron; several files of one launch")
      ->required();
  command->add_option("--output", request->output, "write the scenario here; else it is printed")
      ->to_write()
      ->type_name("FILE");
  command->add_option("--from", request->from, "the framework, if its content does not tell")->choices(formats);
  command->add_option("--model", request->model, "the model, as elsewhere, instead of the launch's")->type_name("NAME");
  command->add_option("--on", request->machine, "the machine: 16xh100, 4xrtx4090, dgx-h100x2, a profile or its file")
      ->type_name("MACHINE");
  command->add_option("--env", request->values, "NAME=VALUE: a shell variable's value, instead of the script's own")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command->add_flag(
      "--strict", request->is_strict,
      "refuse flags that nobody knows (exit code 2); exit code 4 where a verdict hangs on what the launch "
      "leaves open or a scenario can't say");
  command->callback([&context, request] { run_stoppable([&] { run_import(context, *request); }); });
}

}  // namespace spillway::cli
