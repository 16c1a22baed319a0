#include "cli/commands/export_command.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/output/table.h"
#include "launch/launch_export.h"
#include "scenario/module_plan.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportCall {
  std::string scenario, target, output;
  std::vector<std::string> settings;
};

Table unsaid_table(const LaunchExport& made) {
  Table table({"not exported", "value", "reason"});
  for (const UnsaidKey& each : made.unsaid) table.add({each.key, each.value, each.reason});
  return table;
}

// What is exported and what isn't, for spreadsheets.
Table export_table(const LaunchExport& made) {
  Table table({"scenario key", "value", "flag", "as", "reason"});
  for (const SaidKey& each : made.said) table.add({each.key, each.value, each.flag, each.as, ""});
  for (const UnsaidKey& each : made.unsaid) table.add({each.key, each.value, "", "", each.reason});
  return table;
}

void print_export(const LaunchExport& made, const std::string& target) {
  Json document = json_document("spillway.export");
  document["for"] = target;
  document["text"] = made.text;
  document["said"] = Json::array();
  for (const SaidKey& each : made.said)
    document["said"].push_back({{"key", each.key}, {"value", each.value}, {"flag", each.flag}, {"as", each.as}});
  document["unsaid"] = Json::array();
  document["warnings"] = Json::array();
  for (const UnsaidKey& each : made.unsaid) {
    document["unsaid"].push_back({{"key", each.key}, {"value", each.value}, {"reason", each.reason}});
    document["warnings"].push_back(each.key + " " + each.value + " is not exported: " + each.reason);
  }
  print_json(document);
}

// The fates of the scenario's run, by modules.
LaunchExport export_modules(const Scenario& scenario) {
  const LoadedScenario loaded = load(scenario);
  const ModulePlan plan = module_plan(loaded, Evaluator(loaded).run());
  LaunchExport made{.text = module_plan_json(plan)};
  for (const std::string& sentence : plan.refused) made.unsaid.push_back({"plan", "as the run has it", sentence});
  return made;
}

void run_export(const Context& context, const ExportCall& request) {
  const Scenario scenario = load_scenario(request.scenario, request.settings);
  const LaunchExport made =
      request.target == module_plan_target ? export_modules(scenario) : export_launch(scenario, request.target);
  const bool writes = !request.output.empty() && request.output != "-";
  if (writes) {
    OutputFile file(request.output);
    file.write(made.text);
    file.commit();
  }
  if (context.json()) return print_export(made, request.target);
  if (context.rows_only()) return print(context, export_table(made));
  if (!made.unsaid.empty()) note(context, unsaid_table(made).text());
  if (!writes) print(made.text);
}

}  // namespace

void add_export_command(Command& app, Context& context) {
  std::vector<std::string> targets;
  for (const Word& each : export_target_words()) targets.emplace_back(each.name);
  targets.emplace_back(module_plan_target);
  Command* command = app.add_subcommand("export", "A scenario as a framework's flags and files");
  const auto request = std::make_shared<ExportCall>();
  command->add_option("SCENARIO", request->scenario, "a scenario that names a model")->required();
  command
      ->add_option("--for", request->target,
                   "the framework; torch is accelerate with Hugging Face's Trainer, pytorch a plan's fates for "
                   "spillway.torch.apply")
      ->required()
      ->choices(targets);
  command->add_option("--output", request->output, "write the script or configuration here; else it is printed")
      ->to_write()
      ->type_name("FILE");
  command->add_option("--set", request->settings, "key=value: change the scenario, for example model.sequence=8192")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->callback([&context, request] { run_stoppable([&] { run_export(context, *request); }); });
}

}  // namespace spillway::cli
