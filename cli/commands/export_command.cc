#include "cli/commands/export_command.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_error.h"
#include "base/output_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/output/table.h"
#include "launch/launch_export.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/offload_settings.h"
#include "scenario/brief_run.h"
#include "scenario/module_plan.h"
#include "sim/replay/verdict_words.h"
#include "studies/fit/fit_knobs.h"

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

// ---- what the file alone comes to ----

struct Carried {
  Result asked, alone;
  [[nodiscard]] bool changes_verdict() const { return is_yes(asked.answer()) && !is_yes(alone.answer()); }
  [[nodiscard]] bool differs() const {
    constexpr double alike = 0.02;
    const double step = to_seconds(asked.step_time);
    return changes_verdict() || std::abs(to_seconds(alone.step_time) - step) > alike * step;
  }
};

// The scenario without what the file can't say, as the framework has it by itself. What the question itself is (the
// sequence, dropout) is the program's to say, not the file's.
Scenario as_said(Scenario scenario, const LaunchExport& made) {
  for (const UnsaidKey& each : made.unsaid) {
    const std::string_view key = each.key;
    if (key == "offload.technique") scenario.offload.technique = no_offload;
    if (key == "plan") scenario.plan.clear();
    if (key == "memory.plan") scenario.memory_plan.clear();
    constexpr std::string_view model = "model.";
    if (!each.otherwise || !key.starts_with(model)) continue;
    const std::string_view field = key.substr(model.size());
    if (field == "framework" || studies::role_of(field) != studies::KeyRole::question)
      set_field(scenario.training, field, *each.otherwise);
  }
  return scenario;
}

std::optional<Carried> carried(const Scenario& scenario, const LaunchExport& made) {
  if (made.unsaid.empty()) return std::nullopt;
  return Carried{run_briefly(scenario, Detail::times).run.result,
                 run_briefly(as_said(scenario, made), Detail::times).run.result};
}

std::string carried_text(const Carried& both) {
  const auto told = [](const Result& result) {
    return fmt::format("{}, {:.4g} s a step", verdict_sentence(result), to_seconds(result.step_time));
  };
  return fmt::format("with what is exported alone: {}; as asked: {}", told(both.alone), told(both.asked));
}

// Says what is lost where it matters; a scenario that fits and no longer does is no export to rely on.
void tell_carried(Context& context, const Scenario& scenario, const LaunchExport& made, std::string_view target) {
  try {
    const std::optional<Carried> both = carried(scenario, made);
    if (!both || !both->differs()) return;
    note(context, carried_text(*both));
    if (both->changes_verdict()) context.exit_code = exit_answer_is_no;
  } catch (const InputError& error) {
    note(context, fmt::format("without what is not exported {} can't run it: {}", target, error.cause()));
  }
}

void run_export(Context& context, const ExportCall& request) {
  const Scenario scenario = load_scenario(request.scenario, request.settings);
  const bool is_plan = request.target == module_plan_target;
  const LaunchExport made = is_plan ? export_modules(scenario) : export_launch(scenario, request.target);
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
  if (!is_plan) tell_carried(context, scenario, made, request.target);
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
