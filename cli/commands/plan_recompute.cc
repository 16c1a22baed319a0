#include "cli/commands/plan_recompute.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/offload_plan_file.h"
#include "cli/options/reserve_option.h"
#include "cli/options/scenario_argument.h"
#include "cli/options/setting_options.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "planners/recompute/recompute_run.h"
#include "scenario/reserve.h"
#include "scenario/scenario_run.h"
#include "studies/offload/best_offload.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RecomputeCall {
  std::string scenario, method = "best", output;
  std::vector<std::string> settings;
  std::string reserve;
  std::uint64_t budget = 0;
};

Json recompute_case_json(const RecomputeCase& one) {
  return {{"method", one.name},
          {"step_time_ns", whole_nanoseconds(one.result.step_time)},
          {"peak_allocated_bytes", one.result.memory.peak_allocated.count()},
          {"peak_reserved_bytes", one.result.memory.peak_reserved.count()},
          {"fits", fits_json(one.result.verdict())},
          {"verdict", to_string(one.result.verdict())},
          {"away_bytes", one.away.count()},
          {"repeated_ops", one.repeated},
          {"repeated_time_ns", whole_nanoseconds(one.again)},
          {"refused_tensors", one.refused}};
}

void print_recompute(Context& context, const BestRecompute& best, const Reserve& reserve, Bytes budget) {
  const RecomputeOutcome& outcome = best.outcome;
  if (context.json()) {
    Json document = json_document("spillway.plan_recompute");
    document["budget_bytes"] = budget.count();
    document["reserve"] = reserve_json(reserve);
    document["plan"] = recompute_case_json(outcome.best);
    document["settings"] = best.settings;
    document["others"] = Json::array();
    for (const RecomputeCase& other : outcome.others) document["others"].push_back(recompute_case_json(other));
    document["replays"] = outcome.replays;
    return print_json(document);
  }
  Table table({"method", "step time (ms)", "peak", "reserved", "fits", "away", "ops again", "time again (ms)"});
  const auto row = [&table](const RecomputeCase& one, const std::string& name) {
    table.add({name, fmt::format("{:.3f}", to_seconds(one.result.step_time) * 1e3),
               gib_text(one.result.memory.peak_allocated, 3), gib_text(one.result.memory.peak_reserved, 3),
               std::string(yes_or_no(one.result.verdict())), gib_text(one.away, 3), std::to_string(one.repeated),
               fmt::format("{:.3f}", to_seconds(one.again) * 1e3)});
  };
  for (const RecomputeCase& other : outcome.others) row(other, other.name);
  for (const VariantCase& one : best.variants) {
    if (one.loaded == nullptr || one.is_same || one.candidate.edits == best.settings) continue;
    RecomputeCase kept;
    kept.result = one.result;
    row(kept, "set " + one.candidate.edits.front());
  }
  row(outcome.best, context.rows_only() ? outcome.best.name : "-> " + outcome.best.name);
  print(context, table);
  if (!best.settings.empty()) note(context, "the plan is for the step with --set " + best.settings.front());
  if (outcome.best.refused > 0)
    note(context, fmt::format("{} tensors stay although the method drops them: they cannot be recomputed",
                              outcome.best.refused));
}

void run_plan(Context& context, const RecomputeCall& call) {
  RecomputeSettings settings;
  settings.choice = parse_recompute_choice(call.method);
  settings.budget = budget_argument(call.budget);
  const std::vector<std::string> said = with_reserve(call.settings, call.reserve);
  LoadedScenario loaded = load_argument(call.scenario, said);
  loaded.scenario.imported.tells_amounts = false;  // of a dozen rows
  prepare_for_offload(loaded);
  const Progress progress(context);
  const BestRecompute best = best_recompute(
      loaded, with_settings(call.scenario, said), settings,
      [&progress](std::int64_t replays) { return progress.show(fmt::format("replay {}", replays + 1)); });
  const bool is_own_budget = settings.budget > Bytes(0);
  const RecomputeOutcome& outcome = best.outcome;
  warn_of_verdict(context, outcome.best.result);
  for (const std::string& warning : outcome.best.result.warnings) warn(context, warning);
  write_offload_plan(best.loaded ? best.loaded->trace : loaded.trace, outcome.best.plan, call.output);
  print_recompute(context, best, is_own_budget ? Reserve() : loaded.reserve,
                  is_own_budget ? settings.budget : loaded.options.memory.capacity);
  context.exit_code = exit_code_of(outcome.best.result);
}

}  // namespace

void add_plan_recompute(Command& group, Context& context) {
  Command* command = group.add_subcommand("recompute", "Which activations to recompute so that a step fits");
  const auto call = std::make_shared<RecomputeCall>();
  command->add_option("SCENARIO", call->scenario, "scenario file, or a trace to replay as captured")->required();
  command
      ->add_option("--method", call->method,
                   "none, selective, full, every:K, segments:K, greedy, chain, exact, tensors, best")
      ->capture_default_str()
      ->type_name("METHOD");
  command->add_option("--budget", call->budget, "device memory to fit into (default: the hardware's), e.g. 40GiB")
      ->size_with_unit()
      ->type_name("BYTES");
  command->add_option("--output", call->output, "write the plan; a run follows it with --set plan=FILE")
      ->to_write()
      ->type_name("FILE.json");
  add_reserve_option(*command, call->reserve);
  add_setting_options(*command, call->settings);
  command->callback([&context, call] { run_stoppable([&] { run_plan(context, *call); }); });
}

}  // namespace spillway::cli
