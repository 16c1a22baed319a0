#include "cli/commands/export_command.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/setting_options.h"
#include "cli/output/table.h"
#include "launch/launch_export.h"
#include "scenario/brief_run.h"
#include "scenario/module_plan.h"
#include "sim/replay/verdict_words.h"
#include "studies/fit/fit_exports.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportCall {
  std::string scenario, target, output;
  std::vector<std::string> settings;
};

Table unsaid_table(const LaunchExport& made) {
  Table table({"not exported", "value", "runs as", "reason"});
  for (const UnsaidKey& each : made.unsaid)
    table.add({each.key, each.value, each.otherwise.value_or("-"), each.reason});
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
    document["unsaid"].push_back({{"key", each.key},
                                  {"value", each.value},
                                  {"runs_as", each.otherwise ? Json(*each.otherwise) : Json()},
                                  {"reason", each.reason}});
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

std::string told(const Result& result) {
  return fmt::format("{}, {:.4g} s a step", verdict_sentence(result), to_seconds(result.step_time));
}

// Says what is lost where it matters; a scenario that fits and no longer does is no export to rely on.
void tell_loss(Context& context, const Scenario& scenario, const studies::Exported& one) {
  constexpr double alike = 0.02;
  if (one.launch.unsaid.empty()) return;
  if (!one.alone) {
    note(context, fmt::format("without that {} can't run it: {}", one.target, one.refusal));
    context.exit_code = exit_answer_is_no;
    return;
  }
  const Result asked = run_briefly(scenario, Detail::figures).run.result;
  const bool changes_verdict = is_yes(asked.answer()) && !is_yes(one.alone->answer());
  const auto is_alike = [](double is, double was) { return std::abs(is - was) <= alike * was; };
  const bool same_time = is_alike(to_seconds(one.alone->step_time), to_seconds(asked.step_time));
  const bool same_memory = is_alike(static_cast<double>(one.alone->memory.peak_reserved.count()),
                                    static_cast<double>(asked.memory.peak_reserved.count()));
  if (!changes_verdict && same_time && same_memory) return;
  note(context, fmt::format("with what is exported alone: {}; as asked: {}", told(*one.alone), told(asked)));
  if (changes_verdict) context.exit_code = exit_answer_is_no;
}

void run_export(Context& context, const ExportCall& request) {
  const Scenario scenario = load_scenario(request.scenario, request.settings);
  std::optional<studies::Exported> one;
  if (request.target != module_plan_target) one = studies::exported(scenario, request.target);
  const LaunchExport made = one ? one->launch : export_modules(scenario);
  const bool writes = !request.output.empty() && request.output != "-";
  if (writes) {
    OutputFile file(request.output);
    file.write(made.text);
    file.commit();
  }
  if (context.json())
    print_export(made, request.target);
  else if (context.rows_only())
    print(context, export_table(made));
  else if (!made.unsaid.empty())
    note(context, unsaid_table(made).text());
  if (!writes && !context.json() && !context.rows_only()) print(made.text);
  if (one) tell_loss(context, scenario, *one);
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
                   "the framework; torch is accelerate with Hugging Face's Trainer, pytorch a per-tensor plan for "
                   "spillway.torch.apply")
      ->required()
      ->choices(targets);
  command->add_option("--output", request->output, "write the script or configuration here; else it is printed")
      ->to_write()
      ->type_name("FILE");
  add_setting_options(*command, request->settings);
  command->callback([&context, request] { run_stoppable([&] { run_export(context, *request); }); });
}

}  // namespace spillway::cli
