#include "cli/commands/plan_offload.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "base/output_file.h"
#include "base/short_text.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/offload_plan_file.h"
#include "cli/options/reserve_option.h"
#include "cli/options/scenario_argument.h"
#include "cli/options/setting_options.h"
#include "cli/options/text_page.h"
#include "cli/output/cell.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"
#include "planners/offload/hybrid_search.h"
#include "planners/technique/technique_table.h"
#include "scenario/reserve.h"
#include "studies/answer/answer.h"
#include "studies/offload/best_offload.h"
#include "studies/offload/result_figures.h"
#include "studies/offload/rok.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct OffloadRequest {
  std::string scenario, output;
  std::vector<std::string> settings;
  std::string reserve;
  std::uint64_t budget = 0;
  double least_life_years = 0;
  HybridSettings plan;
};

Json offload_case_json(const HybridCase& one) {
  return {{"name", one.name},
          {"fits", fits_json(one.result.answer())},
          {"verdict", to_string(one.result.answer())},
          {"step_time_ns", whole_nanoseconds(one.result.step_time)},
          {"peak_allocated_bytes", one.result.memory.peak_allocated.count()},
          {"peak_reserved_bytes", one.result.memory.peak_reserved.count()},
          {"bytes_written", studies::drives_written(one.result).count()},
          {"life_years", number_or_null(one.life_years)},
          {"drives_refuse", one.result.drives_refuse}};
}

// As on the command line.
std::string joined(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += (text.empty() ? "--set " : " --set ") + setting;
  return text;
}

std::string why_not(const Result& result) {
  if (!result.drives_refuse.empty()) return result.drives_refuse;
  return "what comes nearest takes " + gib(result.memory.excess()) + " GiB more than the budget";
}

// As people read it.
std::string case_words(const HybridCase& one) {
  if (one.name == hybrid_word) return words_of_ways(one.name);
  if (one.technique == no_offload) return "nothing moved";
  if (one.technique.empty()) return one.name;
  const std::vector<TechniqueWay>& ways = technique_named(one.technique).ways;
  return (one.tier == Tier::host ? ways.back() : ways.front()).about;
}

void add_case(const Context& context, Table& table, Cell name, const HybridCase& one) {
  const MemoryResult& memory = one.result.memory;
  const Bytes written = studies::drives_written(one.result);
  const double seconds = to_seconds(one.result.step_time);
  table.add(shown_cells(context, {std::move(name),
                                  Cell(std::string(yes_or_no(one.result.answer()))),
                                  {short_duration(seconds), fmt::format("{:.3f}", seconds * 1e3)},
                                  {three_digits(in_gib(memory.peak_allocated)), gib(memory.peak_allocated)},
                                  {three_digits(in_gib(memory.peak_reserved)), gib(memory.peak_reserved)},
                                  {written > Bytes(0) ? three_digits(in_gib(written)) : "-", gib(written)},
                                  Cell(life_cell(one.result))}));
}

Json variant_json(const VariantCase& one) {
  Json json = {{"name", one.candidate.name}, {"settings", one.candidate.edits}};
  if (one.loaded == nullptr) {
    json["refused"] = one.error;
    return json;
  }
  put_verdict(json, one.result.verdict());
  json["step_time_ns"] = whole_nanoseconds(one.result.step_time);
  json["peak_reserved_bytes"] = one.result.memory.peak_reserved.count();
  json["same_step"] = one.is_same;
  json["planned"] = one.planned;
  return json;
}

struct OffloadAnswer {
  BestOffload best;
  Bytes budget{};
  Reserve reserve;
  double seconds = 0;
  std::vector<std::string> with;  // settings that a run of the answer takes, the plan left out
};

void print_offload_json(const OffloadAnswer& answer) {
  const HybridOutcome& outcome = answer.best.outcome;
  Json document = json_document("spillway.plan_offload");
  document["fingerprint"] = fmt::format("{:016x}", outcome.best.result.fingerprint);
  document["budget_bytes"] = answer.budget.count();
  document["reserve"] = reserve_json(answer.reserve);
  document["best"] = offload_case_json(outcome.best);
  document["settings"] = answer.with;
  document["baselines"] = Json::array();
  for (const HybridCase& one : outcome.baselines) document["baselines"].push_back(offload_case_json(one));
  document["variants"] = Json::array();
  for (const VariantCase& one : answer.best.variants) document["variants"].push_back(variant_json(one));
  document["kept_bytes"] = outcome.kept.count();
  document["to_host_bytes"] = outcome.to_host.count();
  document["to_drives_bytes"] = outcome.to_drives.count();
  document["recomputed_bytes"] = outcome.recomputed.count();
  document["replays"] = answer.best.replays;
  document["seconds"] = answer.seconds;
  document["warnings"] = Json::array();
  print_json(document);
}

void print_offload(Context& context, const OffloadAnswer& answer) {
  if (context.json()) return print_offload_json(answer);
  const HybridOutcome& outcome = answer.best.outcome;
  Table table({"plan", "fits", context.rows_only() ? "step time (ms)" : "step", "allocated (GiB)", "reserved (GiB)",
               "written (GiB)", "life (years)"});
  for (const HybridCase& one : outcome.baselines) add_case(context, table, {case_words(one), one.name}, one);
  for (const VariantCase& one : answer.best.variants)
    if (one.loaded != nullptr && !one.is_same)
      add_case(context, table, {words_of_ways(one.candidate.name), one.candidate.name},
               {.name = one.candidate.name,
                .plan = {},
                .result = one.result,
                .life_years = std::numeric_limits<double>::infinity()});
  const std::string on = answer.best.settings.empty() ? "" : joined(answer.best.settings);
  const auto best = [&](const std::string& name) {
    return "best: " + (on.empty() ? name : outcome.best.plan.empty() ? on : name + ", " + on);
  };
  add_case(context, table, {best(case_words(outcome.best)), best(outcome.best.name)}, outcome.best);
  print(context, table);
  if (context.rows_only()) return;
  if (!outcome.best.may_fit()) print("\nno: " + why_not(outcome.best.result) + "\n");
  if (!on.empty() && outcome.best.may_fit())
    print("\nfits with " + on + (outcome.best.plan.empty() ? "" : " and the plan") + "\n");
  print("\n" +
        paragraphs(
            fmt::format(
                "budget {} GiB; of the tensors with a choice {} GiB stay, {} GiB go to host memory, {} GiB to drives, "
                "{} GiB are recomputed\n{} simulations in {:.2f} s\n",
                gib(answer.budget), gib(outcome.kept), gib(outcome.to_host), gib(outcome.to_drives),
                gib(outcome.recomputed), answer.best.replays, answer.seconds),
            page_width(), 2));
}

HybridSettings hybrid_settings(const OffloadRequest& request, const LoadedScenario& loaded) {
  HybridSettings settings = request.plan;
  settings.budget = budget_argument(request.budget);
  settings.runtime = loaded.scenario.offload;
  if (request.least_life_years > 0) settings.runtime.demands.least_life_years = request.least_life_years;
  return settings;
}

void run_plan_offload(Context& context, const OffloadRequest& request) {
  const std::vector<std::string> said = with_reserve(request.settings, request.reserve);
  LoadedScenario loaded = load_argument(request.scenario, said);
  prepare_for_offload(loaded);
  loaded.scenario.imported.tells_amounts = false;  // of a dozen rows
  const HybridSettings settings = hybrid_settings(request, loaded);
  const Progress progress(context);
  const auto begin = Clock::now();
  OffloadAnswer answer;
  answer.best = best_offload(loaded, with_settings(request.scenario, said), settings, [&progress](std::int64_t done) {
    return progress.show(fmt::format("replay {}", done + 1));
  });
  answer.reserve = settings.budget > Bytes(0) ? Reserve() : loaded.reserve;
  answer.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  answer.budget = settings.budget > Bytes(0) ? settings.budget : loaded.options.memory.capacity;
  answer.with = answer.best.settings;
  for (std::string& setting : settings_of(answer.best.outcome.best)) answer.with.push_back(std::move(setting));
  if (settings.budget > Bytes(0)) answer.with.push_back("memory.capacity_bytes=" + std::to_string(request.budget));
  for (const std::string& warning : loaded.warnings)
    if (context.rows_only() || !studies::is_of_modelled_times(warning)) warn(context, studies::warning_words(warning));
  const HybridCase& best = answer.best.outcome.best;
  const LoadedScenario& planned = answer.best.loaded ? *answer.best.loaded : loaded;
  write_offload_plan(planned.trace, best.plan, request.output);
  warn_of_verdict(context, best.result);
  print_offload(context, answer);
  context.exit_code = exit_code_of(best.result);
}

struct RokRequest {
  std::string scenario, output;
  std::vector<std::string> settings;
  std::vector<std::int64_t> batches = {1, 2, 4, 8};
  bool mix = false;
};

void run_plan_rok(Context& context, const RokRequest& request) {
  const ScenarioWith with = with_settings(request.scenario, request.settings);
  const Progress progress(context);
  const std::vector<RokPoint> points = rok_curve(with, request.batches, request.mix, progress.counter("replays"));
  if (!request.output.empty()) {
    OutputFile out(request.output);
    out.write(rok_svg(with({}).title, points));
    out.commit();
  }
  if (context.json()) {
    Json document = json_document("spillway.plan_rok");
    document["points"] = Json::array();
    for (const RokPoint& point : points)
      document["points"].push_back({{"family", point.candidate.name},
                                    {"micro_batch", point.micro_batch},
                                    {"activation_bytes", point.activations.count()},
                                    {"peak_reserved_bytes", point.result.memory.peak_reserved.count()},
                                    {"step_time_ns", whole_nanoseconds(point.result.step_time)},
                                    {"model_flops_per_second", point.model_flops_per_second},
                                    {"tokens_per_second", point.result.tokens_per_second},
                                    {"fits", fits_json(point.result.verdict())},
                                    {"verdict", to_string(point.result.verdict())},
                                    {"on_frontier", point.on_frontier}});
    document["warnings"] = Json::array();
    return print_json(document);
  }
  Table table({"activations are", "micro_batch", "activations (GiB)", "reserved (GiB)", "step time (ms)", "TFLOP/s",
               "tokens/s", "fits", "frontier"});
  for (const RokPoint& point : points)
    table.add({context.rows_only() ? point.candidate.name : family_words(point.candidate.name),
               std::to_string(point.micro_batch), gib(point.activations), gib(point.result.memory.peak_reserved),
               fmt::format("{:.3f}", to_seconds(point.result.step_time) * 1e3),
               fmt::format("{:.2f}", point.model_flops_per_second / 1e12),
               fmt::format("{:.0f}", point.result.tokens_per_second), std::string(yes_or_no(point.result.verdict())),
               point.on_frontier ? "yes" : "no"});
  print(context, table);
}

}  // namespace

void add_plan_offload(Command& group, Context& context) {
  const auto request = std::make_shared<OffloadRequest>();
  Command* command = group.add_subcommand(
      "offload", "For each activation: keep, offload or recompute, so that the step fits and is fastest");
  command->add_option("SCENARIO", request->scenario, "scenario file, or a trace to replay as captured")->required();
  command->add_option("--budget", request->budget, "device memory to fit into (default: the hardware's), e.g. 40GiB")
      ->size_with_unit()
      ->type_name("BYTES");
  command->add_option("--least-life", request->least_life_years, "years that the SSDs must last")
      ->amount(Dimension::years, "years")
      ->type_name("YEARS")
      ->check(non_negative_number());
  HybridSettings& plan = request->plan;
  command->add_option("--replays", plan.replays, "simulations to spend (default: by the size of the step)")
      ->type_name("N")
      ->check(positive_number());
  command->add_option("--output", request->output, "write the plan; a run follows it with --set plan=FILE")
      ->to_write()
      ->type_name("FILE.json");
  command->add_flag(
      "--no-drives", [&plan] { plan.drives = false; }, "nothing goes to SSDs");
  command->add_flag(
      "--no-host", [&plan] { plan.host = false; }, "nothing goes to host memory");
  command->add_flag(
      "--no-recompute", [&plan] { plan.recompute = false; }, "nothing is recomputed");
  add_setting_options(*command, request->settings);
  add_reserve_option(*command, request->reserve);
  command->callback([request, &context] { run_stoppable([&] { run_plan_offload(context, *request); }); });
}

void add_plan_rok(Command& group, Context& context) {
  const auto request = std::make_shared<RokRequest>();
  Command* command =
      group.add_subcommand("rok", "Recompute, offload, keep: activation memory against throughput, per batch");
  command->add_option("SCENARIO", request->scenario, "scenario file with a model")->required();
  command->add_option("--batches", request->batches, "micro-batches to simulate")
      ->type_name("N,N,...")
      ->delimiter(',')
      ->check(positive_number());
  command->add_flag("--mix", request->mix, "also the best mix within the GPU's memory (slower)");
  command->add_option("--output", request->output, "write the curve as a picture")->to_write()->type_name("FILE.svg");
  add_setting_options(*command, request->settings);
  command->callback([request, &context] { run_stoppable([&] { run_plan_rok(context, *request); }); });
}

}  // namespace spillway::cli
