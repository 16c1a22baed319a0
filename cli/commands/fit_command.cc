#include "cli/commands/fit_command.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/stop.h"
#include "cli/commands/fit_page.h"
#include "cli/options/deadline.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/reserve_option.h"
#include "cli/options/store_option.h"
#include "cli/output/answer_output.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/row_report.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"
#include "studies/answer/answer_json.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FitCall {
  std::string store;  // of replays
  FitQuestion question;
  std::string goal, output, reserve, framework;
  std::vector<std::string> settings;  // as given
  std::size_t jobs = 0;
  double seconds = 0;  // 0: no limit
  double effort = 1;
  bool all = false;
  std::size_t way = 1;  // of those shown
};

// ---- JSON ----

Json fit_way_json(const FitWay& way) {
  Json json = row_json(way.row);
  json["same_maths"] = !way.changes_maths;  // the name before "numerics"
  json["numerics"] = way.changes_maths ? "changed" : "same";
  json["runs_in"] = to_string(way.carrier);
  json["confidence"] = Json();
  if (way.row.ran())
    json["confidence"] = {{"step_time", range_json(way.row.result.step_time_range)},
                          {"memory", range_json(way.row.result.peak_range)},
                          {"binding_provenance", way.binding_provenance}};
  return json;
}

Json other_json(const OtherTraining& other) {
  Json json = other.best ? fit_way_json(*other.best)
              : other.refusal.empty()
                  ? Json{{"verdict", to_string(other.ended_early ? Verdict::unknown : Verdict::does_not_fit)}}
                  : Json{{"verdict", to_string(Verdict::unknown)}, {"error", other.refusal}};
  json["training"] = other.name;
  return json;
}

Json exported_json(const studies::Exported& one) {
  Json json = {{"for", one.target}, {"runs", one.alone && is_yes(one.alone->answer())}};
  json["verdict"] = to_string(one.alone ? one.alone->answer() : Verdict::unknown);
  if (one.alone) json["step_time_ns"] = whole_nanoseconds(one.alone->step_time);
  if (one.with_code) {
    json["with_code"] = {{"verdict", to_string(one.with_code->answer())},
                         {"step_time_ns", whole_nanoseconds(one.with_code->step_time)},
                         {"code", one.code}};
  }
  if (!one.refusal.empty()) json["error"] = one.refusal;
  json["not_exported"] = Json::array();
  for (const launch::UnsaidKey& each : one.launch.unsaid) json["not_exported"].push_back(each.key);
  return json;
}

std::string command_of(const FitCall& call) {
  const FitQuestion& question = call.question;
  std::vector<std::string> words = {"fit", question.what};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--on", question.machine);
  if (question.goal != FitGoal::speed) add("--goal", call.goal);
  add("--for", call.framework);
  add("--keep-free", call.reserve);
  if (question.sequence > 0) add("--sequence", std::to_string(question.sequence));
  if (question.global_batch > 0) add("--global-batch", std::to_string(question.global_batch));
  if (question.same_maths) words.emplace_back("--keep-numerics");
  if (question.any_numerics) words.emplace_back("--any-numerics");
  if (question.research) words.emplace_back("--research");
  if (call.effort != 1) add("--effort", fmt::format("{:g}", call.effort));
  return told_command(std::move(words), call.settings);
}

Json outcome_json(const FitCall& call, const FitFindings& found) {
  const FitOutcome& outcome = found.outcome;
  const FitSubject& subject = found.subject;
  Json document = json_document("spillway.fit");
  document["goal"] = call.goal;
  if (!call.framework.empty()) document["for"] = call.framework;
  document["gpus"] = subject.gpus;
  document["machine"] = subject.hardware.name;
  document["assumptions"] = subject.assumptions;
  document["cost_basis"] = told_cost();
  if (outcome.any()) document["fingerprint"] = fmt::format("{:016x}", outcome.ways.front().row.result.fingerprint);
  document["fitting"] = outcome.fitting;
  const std::size_t same = outcome.best_of_same_maths();
  document["best_of_same_maths"] = same < outcome.ways.size() ? Json(same) : Json();
  document["ways"] = Json::array();
  for (const FitWay& way : outcome.ways) document["ways"].push_back(fit_way_json(way));
  document["shown"] = Json::array();
  for (std::size_t i = 0; i < found.shown.size(); ++i) {
    const studies::ShownWay& way = found.shown[i];
    Json folded = Json::array();
    for (const studies::FoldedWay& one : way.folded) folded.push_back({{"way", one.way}, {"reason", one.reason}});
    document["shown"].push_back({{"way", way.way},
                                 {"group", title_of(group_of(outcome.ways[way.way]))},
                                 {"launched_by", found.launched_by[i] ? Json(*found.launched_by[i]) : Json()},
                                 {"folded", std::move(folded)}});
  }
  document["without"] = Json::array();
  for (const FitAblation& each : outcome.worth) document["without"].push_back({{"name", each.name}, {"way", each.way}});
  document["other_trainings"] = Json::array();
  for (const OtherTraining& other : found.others) document["other_trainings"].push_back(other_json(other));
  document["other_machine"] = Json();
  document["larger_machines"] = Json::array();
  for (const studies::OtherMachine& other : found.machines) {
    Json on_it = fit_way_json(other.best);
    on_it["machine"] = other.machine;
    on_it["gpus"] = other.gpus;
    if (other.is_larger)
      document["larger_machines"].push_back(std::move(on_it));
    else
      document["other_machine"] = std::move(on_it);
  }
  document["exports"] = Json::array();
  for (const studies::Exported& one : found.exports) document["exports"].push_back(exported_json(one));
  document["layouts_estimated"] = outcome.screened;
  document["replays"] = outcome.replayed;
  document["work"] = outcome.work;
  document["stopped"] = outcome.stopped;
  document["exhausted"] = outcome.exhausted;
  document["proof"] = Json();
  if (const std::optional<studies::FitProof>& proof = outcome.proof)
    document["proof"] = {{"set_ups", proof->set_ups},
                         {"too_large", proof->too_large},
                         {"slower", proof->slower},
                         {"open", proof->open},
                         {"least_step_time_s", proof->least_seconds},
                         {"proven", proof->is_proven()}};
  document["warnings"] = outcome.any() ? Json(outcome.ways.front().row.result.warnings) : Json::array();
  document["answer"] = answer_json(fit_answer(found, command_of(call)));
  return document;
}

// The scenario with the chosen way's edits, its paths seen from where it is written.
void write_chosen(const FitFindings& found, const std::string& path) {
  const FitSubject& subject = found.subject;
  const Row& chosen = found.numbered(found.chosen).row;
  std::string text = subject.scenario.text;
  for (const std::string& setting : chosen.candidate.edits) text = with_setting(text, setting);
  OutputFile file(path);
  file.write(moved_scenario(text, subject.scenario.folder, std::filesystem::path(path).parent_path().string()));
  file.commit();
}

// With what only a page shows: each way as frameworks launch it, and memory over time.
void write_page(const FitCall& call, const FitFindings& found) {
  studies::Answer document = fit_answer(found, command_of(call));
  if (!found.outcome.stopped) add_launches(found, document);
  add_fit_pictures(found, document);
  write_answer(document, call.output);
}

void print_page(Context& context, const FitCall& call, const FitFindings& found) {
  const studies::Answer document = fit_answer(found, command_of(call));
  const FitPage page{.found = found, .answer = document, .all = call.all};
  if (context.rows_only())
    print(context, fit_table(page));
  else
    print(fit_page(page));
}

void run_fit(Context& context, FitCall& call) {
  call.question.goal = static_cast<FitGoal>(*fit_goal_words().find(call.goal));
  std::optional<oneapi::tbb::global_control> jobs;
  if (call.jobs > 0) jobs.emplace(oneapi::tbb::global_control::max_allowed_parallelism, call.jobs);
  call.settings = call.question.settings;
  call.question.settings = with_reserve(call.question.settings, call.reserve);
  StoreInUse store(context, call.store);
  const Deadline deadline(call.seconds);
  call.question.work = std::llround(static_cast<double>(call.question.work) * call.effort);
  FitSubject subject = fit_subject(call.question);
  if (!call.framework.empty()) {
    call.question = asked_by(std::move(call.question), subject, call.framework);
    subject = fit_subject(call.question);
  }
  FitFindings found;
  {
    const Progress progress(context);
    const StopScope scope(&deadline.flag());
    const auto show = [&](const std::string& what, std::size_t replays) {
      return progress.show(fmt::format("{} ({} simulations)", what, replays)) && !deadline.is_reached();
    };
    found = find_ways(call.question, std::move(subject), call.framework, {.store = store.get(), .progress = show});
    if (call.way > found.count() && !found.shown.empty())
      throw InputError("--way", std::to_string(call.way), fmt::format("shown are 1 to {}", found.count()),
                       "name one of them");
    launch_ways(call.way - 1, found);
  }
  const FitOutcome& outcome = found.outcome;
  if (outcome.stopped)
    note(context, is_interrupted() ? "interrupted: the best so far"
                                   : fmt::format("{:.0f} s are over: the best so far (--budget)", call.seconds));
  if (outcome.ways.empty() && is_interrupted()) throw Cancelled();
  if (outcome.ways.empty())
    throw InputError("--budget", fmt::format("{:g}", call.seconds), "no set-up was simulated in that time",
                     "give more seconds");
  if (context.json())
    print_json(outcome_json(call, found));
  else
    print_page(context, call, found);
  const Result* const unknown = outcome.unknown();
  if (outcome.any() || unknown != nullptr)
    warn_of_verdict(context, unknown != nullptr ? *unknown : outcome.ways.front().row.result);
  const bool wants_page = call.output.ends_with(".html");
  if (wants_page) write_page(call, found);
  if (!call.output.empty() && !wants_page && found.has_choice()) write_chosen(found, call.output);
  if (!call.output.empty() && !wants_page && !found.has_choice())
    note(context, "nothing fits: " + call.output + " is not written");
  if (outcome.any() && outcome.ways.front().row.result.is_in_doubt()) context.exit_code = exit_not_known;
  if (!outcome.any())
    context.exit_code = unknown != nullptr || ended_early(outcome) ? exit_not_known : exit_answer_is_no;
}

}  // namespace

void add_fit_command(Command& app, Context& context) {
  Command* command =
      app.add_subcommand("fit", "Ranked set-ups that make a step fit: parallelism, techniques, what each is worth");
  const auto call = std::make_shared<FitCall>();
  call->goal = fit_goal_words()[FitGoal::speed].name;
  FitQuestion& question = call->question;
  command
      ->add_option("WHAT", question.what,
                   "scenario, trace, launch file, or a model: bundled, a Hugging Face id, config.json or its folder")
      ->required();
  command->add_option("--on", question.machine, "the machine: 16xh100, 4xrtx4090, dgx-h100x2, a profile or its file")
      ->type_name("MACHINE");
  std::vector<std::string> goals;
  for (const Word& word : fit_goal_words()) goals.emplace_back(word.name);
  command->add_option("--goal", call->goal, "which of the set-ups that fit is best (speed)")
      ->choices(goals)
      ->type_name("GOAL");
  command->add_flag("--keep-numerics", question.same_maths, "keep optimizer, precision, and update order");
  command->add_flag("--any-numerics", question.any_numerics,
                    "rank set-ups that change the numerics among the others, not behind them");
  command->add_flag("--research", question.research,
                    "also what no program at hand does: planned addresses, other allocators, orders, schedules");
  std::vector<std::string> targets;
  for (const Word& word : launch::export_target_words()) targets.emplace_back(word.name);
  command
      ->add_option("--for", call->framework,
                   "the set-ups as this framework launches them, with what it does by itself where its file can't say")
      ->choices(targets)
      ->type_name("FRAMEWORK");
  command->add_option("--sequence", question.sequence, "tokens of a sequence: 8192, 8k")
      ->amount(Dimension::sequence, "")
      ->check(positive_number())
      ->type_name("TOKENS");
  command->add_option("--global-batch", question.global_batch, "sequences of a step, of all GPUs")
      ->check(positive_number())
      ->type_name("N");
  add_reserve_option(*command, call->reserve);
  command
      ->add_option("--output", call->output,
                   "write the best set-up as a scenario; or the whole answer as one interactive page (.html)")
      ->to_write()
      ->type_name("FILE");
  add_store_option(*command, call->store);
  command->add_option("--jobs", call->jobs, "threads (default: one per core)")->range(1, 1024)->type_name("N");
  command
      ->add_option("--effort", call->effort,
                   "how much is simulated, of what the search does by default (1); the answer does not depend on the "
                   "machine")
      ->range(0.01, 1000.0)
      ->type_name("N");
  command->add_option("--budget", call->seconds, "stop after so long with the best so far")
      ->check(positive_number())
      ->type_name("SECONDS");
  command->add_option("--replays", question.replays, "set-ups simulated, at most (200)")
      ->check(positive_number())
      ->type_name("N");
  command->add_flag("--all", call->all, "show every set-up that was tried");
  command
      ->add_option("--way", call->way,
                   "print what the set-up of this number changes and how it is launched, and write it")
      ->check(positive_number())
      ->type_name("N");
  command
      ->add_option("--set", question.settings,
                   "change a value of the scenario, e.g. model.precision=bf16; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->callback([call, &context] { run_fit(context, *call); });
}

}  // namespace spillway::cli
