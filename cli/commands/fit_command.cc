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
#include "cli/options/deadline.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/reserve_option.h"
#include "cli/options/store_option.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "cli/output/way_report.h"
#include "planners/offload/drive_life.h"
#include "scenario/machine_power.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/fit_search.h"
#include "studies/fit/other_training.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t shown_ways = 10;

struct FitCall {
  std::string store;  // of replays
  FitQuestion question;
  std::string goal, output, reserve;
  std::size_t jobs = 0;
  double seconds = 0;  // 0: no limit
  double effort = 1;
  bool all = false;
};

// ---- JSON ----

Json fit_way_json(const FitWay& way) {
  Json json = way_json(way.row);
  json["same_maths"] = !way.changes_maths;
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
  if (!one.refusal.empty()) json["error"] = one.refusal;
  json["not_exported"] = Json::array();
  for (const launch::UnsaidKey& each : one.launch.unsaid) json["not_exported"].push_back(each.key);
  return json;
}

struct FitAnswer {
  FitOutcome outcome;
  std::vector<OtherTraining> others;
  std::vector<studies::Exported> exports;  // of the best way
};

Json outcome_json(const FitCall& call, const FitSubject& subject, const FitAnswer& answer) {
  const FitOutcome& outcome = answer.outcome;
  Json document = json_document("spillway.fit");
  document["goal"] = call.goal;
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
  document["without"] = Json::array();
  for (const FitAblation& each : outcome.worth) document["without"].push_back({{"name", each.name}, {"way", each.way}});
  document["other_trainings"] = Json::array();
  for (const OtherTraining& other : answer.others) document["other_trainings"].push_back(other_json(other));
  document["exports"] = Json::array();
  for (const studies::Exported& one : answer.exports) document["exports"].push_back(exported_json(one));
  document["layouts_estimated"] = outcome.screened;
  document["replays"] = outcome.replayed;
  document["work"] = outcome.work;
  document["stopped"] = outcome.stopped;
  document["exhausted"] = outcome.exhausted;
  document["warnings"] = outcome.any() ? Json(outcome.ways.front().row.result.warnings) : Json::array();
  return document;
}

// ---- for people ----

std::string or_dash(bool known, const std::string& text) { return known ? text : "-"; }

// What is to spare, as `run` says it, or what is missing.
std::string room_of(const WayRow& row) {
  if (!row.ran()) return row.error;
  if (const std::string missing = row.shortage(); !missing.empty()) return "short of " + missing;
  const MemoryResult& memory = row.result.memory;
  return or_dash(memory.known && memory.limit > Bytes(0), to_spare(row.result));
}

// In the order of FigureColumn.
enum FigureColumn : std::size_t {
  fits_column,
  step_column,
  range_column,
  tokens_column,
  mfu_column,
  peak_column,
  memory_column
};
std::vector<std::string> way_cells(const WayRow& row) {
  const Result& result = row.result;
  const std::optional<double> cost = row.ran() ? row.cost_per_million_tokens() : std::nullopt;
  return {way_verdict(row),
          or_dash(row.ran(), fmt::format("{:.4g}", to_seconds(result.step_time))),
          or_dash(row.ran(), range_cell(result.step_time_range, to_seconds(result.step_time))),
          or_dash(result.tokens_per_second > 0, fmt::format("{:.0f}", result.tokens_per_second)),
          or_dash(result.mfu > 0, fmt::format("{:.1f}", result.mfu * 100)),
          or_dash(row.ran() && result.memory.known, gib(result.memory.peak_reserved)),
          room_of(row),
          life_cell(result),
          or_dash(cost.has_value(), fmt::format("{:.3g}", cost.value_or(0))),
          or_dash(row.ran(), std::string(to_string(result.binding)))};
}

// Who runs it, and whether it trains otherwise.
std::string where_it_runs(const FitWay& way) {
  const std::string carrier(to_string(way.carrier));
  return way.changes_maths ? carrier + ", other numerics" : carrier;
}

bool has_gpu_only_way(const FitOutcome& outcome) {
  return std::any_of(outcome.ways.begin(), outcome.ways.end(),
                     [](const FitWay& way) { return way.row.works() && !way.row.result.host_memory.known; });
}

// The best of each family, the best that leaves the host alone among them; or all.
Table ways_table(const FitOutcome& outcome, bool all) {
  Table table({"way", "fits", "step (s)", "80 % within", "tokens/s", "MFU (%)", "peak (GiB)", "memory", "life (years)",
               "USD/Mtoken", "binds", "runs in"});
  std::set<std::string> families;
  std::set<std::pair<Picos, Bytes>> figures;  // what others come to by more edits says nothing new
  bool has_gpu_only = false;
  for (const FitWay& way : outcome.ways) {
    const bool is_gpu_only = way.row.works() && !way.row.result.host_memory.known;
    const bool is_room_kept = families.size() + 1 == shown_ways && !has_gpu_only && !is_gpu_only;
    if (!all && (families.size() == shown_ways || families.contains(way.family))) continue;
    if (!all && is_room_kept && has_gpu_only_way(outcome)) continue;
    const std::pair own(way.row.result.step_time, way.row.result.memory.peak_reserved);
    if (!all && way.row.ran() && !figures.insert(own).second) continue;
    families.insert(way.family);
    has_gpu_only = has_gpu_only || is_gpu_only;
    std::vector<std::string> row = {way.row.way.name};
    for (std::string& cell : way_cells(way.row)) row.push_back(std::move(cell));
    row.push_back(where_it_runs(way));
    table.add(std::move(row));
  }
  return table;
}

// The winner without each technique, against the winner.
Table worth_table(const FitOutcome& outcome) {
  const WayRow& best = outcome.ways.front().row;
  Table table({"without", "fits", "step (s)", "change", "peak (GiB)", "memory"});
  for (const FitAblation& each : outcome.worth) {
    const WayRow& row = outcome.ways[each.way].row;
    const double ratio = to_seconds(row.result.step_time) / to_seconds(best.result.step_time) - 1;
    const std::vector<std::string> figures = way_cells(row);
    const std::string name = each.name.starts_with("without ") ? each.name.substr(8) : each.name;
    table.add({name, figures[fits_column], figures[step_column], or_dash(row.ran(), signed_percent_text(ratio)),
               figures[peak_column], figures[memory_column]});
  }
  return table;
}

// Of ways that are ranked behind the best for what they are, the fastest where that is faster; else nothing.
std::string faster_text(const FitOutcome& outcome, const char* how, bool (*is_one)(const FitWay&)) {
  const Picos best = outcome.ways.front().row.result.step_time;
  const auto end = outcome.ways.begin() + static_cast<std::ptrdiff_t>(outcome.fitting);
  const auto found = std::find_if(outcome.ways.begin() + 1, end, [&](const FitWay& way) {
    return is_one(way) && way.row.works() && way.row.result.step_time < best;
  });
  if (found == end) return "";
  return fmt::format("faster {}: {}, {:.4g} s\n", how, found->row.way.name, to_seconds(found->row.result.step_time));
}

void print_best(const FitCall& call, const FitOutcome& outcome) {
  const FitWay& best = outcome.ways.front();
  std::string text =
      fmt::format("\nbest for {}: {}\nedits: {}\n", call.goal, best.row.way.name, edits_text(best.row.way.settings));
  text += fmt::format("80 % of steps like it: {}\n80 % of its peaks: {}\n", step_range_words(best.row.result),
                      peak_range_words(best.row.result));
  if (!best.binding_provenance.empty())
    text += fmt::format("figures of what binds, {}: {}\n", to_string(best.row.result.binding),
                        fmt::join(best.binding_provenance, ", "));
  if (const std::size_t same = outcome.best_of_same_maths(); same != 0)
    text += same < outcome.ways.size() ? "the same numerics, best: " + outcome.ways[same].row.way.name + "\n"
                                       : "no way found that fits leaves the numerics as they are\n";
  text += faster_text(outcome, "under a plan of spillway.torch",
                      [](const FitWay& way) { return way.carrier == Carrier::planner && !way.changes_maths; });
  text += faster_text(outcome, "with other numerics", [](const FitWay& way) { return way.changes_maths; });
  print(text);
}

// Another training of the same model, beside the ways of the one that was asked for.
void print_others(Context& context, const std::vector<OtherTraining>& others) {
  if (others.empty()) return;
  print("\nanother training of the model: adapters alone\n");
  Table table({"training", "fits", "step (s)", "tokens/s", "peak (GiB)", "memory", "way"});
  for (const OtherTraining& other : others) {
    if (!other.best) {
      const bool ran = other.refusal.empty();
      const char* const fits = !ran ? "-" : other.ended_early ? "not decided" : "no";
      table.add({other.name, fits, "-", "-", "-", "-", ran ? "none that was tried" : other.refusal});
      continue;
    }
    const std::vector<std::string> figures = way_cells(other.best->row);
    table.add({other.name, figures[fits_column], figures[step_column], figures[tokens_column], figures[peak_column],
               figures[memory_column], other.best->row.way.name});
  }
  print(context, table);
  for (const OtherTraining& other : others)
    if (other.best) print(fmt::format("edits of {}: {}\n", other.name, edits_text(other.best->row.way.settings)));
}

// The best way as `spillway export` writes it, with what each framework has for what it can't say.
void print_exports(Context& context, const std::vector<studies::Exported>& exports) {
  if (exports.empty()) return;
  print("\nthe best as it is exported\n");
  Table table({"for", "fits", "step (s)", "memory", "can't say"});
  for (const studies::Exported& one : exports) {
    std::vector<std::string> keys;
    for (const launch::UnsaidKey& each : one.launch.unsaid) keys.push_back(each.key.substr(each.key.find('.') + 1));
    const std::string unsaid = keys.empty() ? "-" : fmt::format("{}", fmt::join(keys, ", "));
    if (!one.alone) {
      table.add({one.target, "-", "-", one.refusal, unsaid});
      continue;
    }
    const std::string missing = lacking(*one.alone);
    table.add({one.target, std::string(yes_or_no(one.alone->answer())),
               fmt::format("{:.4g}", to_seconds(one.alone->step_time)),
               missing.empty() ? to_spare(*one.alone) : "short of " + missing, unsaid});
  }
  print(context, table);
}

// A no needs a whole search.
bool ended_early(const FitOutcome& outcome) { return outcome.stopped || outcome.exhausted; }

void print_ways(Context& context, const FitCall& call, const FitSubject& subject, const FitAnswer& answer) {
  const FitOutcome& outcome = answer.outcome;
  print(context, ways_table(outcome, call.all));
  if (context.rows_only()) return;
  if (outcome.any()) {
    print_best(call, outcome);
    if (!outcome.worth.empty()) {
      print("\nwhat each part of it is worth\n");
      print(context, worth_table(outcome));
    }
  } else if (outcome.unknown() != nullptr) {
    print("\nwhether any way that was tried fits is unknown\n");
  } else if (ended_early(outcome)) {
    print("\nnot decided: no way that was tried fits, and the search ended early; the nearest is at the top\n");
  } else {
    print("\nno way that was tried fits; the nearest is at the top\n");
  }
  print_exports(context, answer.exports);
  print_others(context, answer.others);
  std::string text = "\n";
  for (const std::string& each : subject.assumptions) text += "assumed: " + each + "\n";
  text += fmt::format("USD/Mtoken: {}\n", told_cost());
  text += fmt::format("{} layouts estimated, {} ways replayed, {} fit{}\n", outcome.screened, outcome.replayed,
                      outcome.fitting,
                      outcome.stopped     ? "; stopped before the search had ended"
                      : outcome.exhausted ? "; more would be tried with --effort"
                      : outcome.any()     ? "; no single edit of the best that was tried is better"
                                          : "");
  print(text);
}

// The scenario with the winner's edits, its paths seen from where it is written.
void write_best(const FitSubject& subject, const FitOutcome& outcome, const std::string& path) {
  std::string text = subject.scenario.text;
  for (const std::string& setting : outcome.ways.front().row.way.settings) text = with_setting(text, setting);
  OutputFile file(path);
  file.write(moved_scenario(text, subject.scenario.folder, std::filesystem::path(path).parent_path().string()));
  file.commit();
}

// None of a capture, or where nothing fits, or of what was interrupted.
std::vector<studies::Exported> best_exported(const FitSubject& subject, FitOutcome& outcome) {
  if (!outcome.any() || !subject.model) return {};
  try {
    return studies::exported(scenario_of(subject.scenario, outcome.ways.front().row.way.settings));
  } catch (const Cancelled&) {
    outcome.stopped = true;
  } catch (const InputError&) {
    // no launch has such a set-up
  }
  return {};
}

void run_fit(Context& context, FitCall& call) {
  call.question.goal = static_cast<FitGoal>(*fit_goal_words().find(call.goal));
  std::optional<oneapi::tbb::global_control> jobs;
  if (call.jobs > 0) jobs.emplace(oneapi::tbb::global_control::max_allowed_parallelism, call.jobs);
  call.question.settings = with_reserve(call.question.settings, call.reserve);
  StoreInUse store(context, call.store);
  const Deadline deadline(call.seconds);
  call.question.work = std::llround(static_cast<double>(call.question.work) * call.effort);
  const FitSubject subject = fit_subject(call.question);
  FitAnswer answer;
  FitOutcome& outcome = answer.outcome;
  {
    const Progress progress(context);
    const StopScope scope(&deadline.flag());
    const auto show = [&](const std::string& what, std::size_t replays) {
      return progress.show(fmt::format("{} ({} replays)", what, replays)) && !deadline.is_reached();
    };
    outcome = find_fit(call.question, subject, {.store = store.get(), .progress = show});
    if (!outcome.stopped)
      answer.others = other_trainings(call.question, subject, {.store = store.get(), .progress = show});
    if (!outcome.stopped) answer.exports = best_exported(subject, outcome);
  }
  if (outcome.stopped)
    note(context, is_interrupted() ? "interrupted: the best so far"
                                   : fmt::format("{:.0f} s are over: the best so far (--budget)", call.seconds));
  if (outcome.ways.empty() && is_interrupted()) throw Cancelled();
  if (outcome.ways.empty())
    throw InputError("--budget", fmt::format("{:g}", call.seconds), "not one way was replayed in that time",
                     "give more seconds");
  if (context.json())
    print_json(outcome_json(call, subject, answer));
  else
    print_ways(context, call, subject, answer);
  const Result* const unknown = outcome.unknown();
  if (outcome.any() || unknown != nullptr)
    warn_of_verdict(context, unknown != nullptr ? *unknown : outcome.ways.front().row.result);
  if (!call.output.empty() && outcome.any()) write_best(subject, outcome, call.output);
  if (!call.output.empty() && !outcome.any()) note(context, "nothing fits: " + call.output + " is not written");
  const bool in_doubt = unknown != nullptr && unknown->is_in_doubt();
  if (outcome.any() && outcome.ways.front().row.result.is_in_doubt()) context.exit_code = exit_not_known;
  if (!outcome.any()) context.exit_code = in_doubt || ended_early(outcome) ? exit_not_known : exit_answer_is_no;
}

}  // namespace

void add_fit_command(Command& app, Context& context) {
  Command* command =
      app.add_subcommand("fit", "Ranked ways to make a step fit: layouts, techniques, what each is worth");
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
  command->add_option("--goal", call->goal, "which of the ways that fit is best (speed)")
      ->choices(goals)
      ->type_name("GOAL");
  command->add_flag("--keep-numerics,--same-maths", question.same_maths,
                    "look at no other optimizer or precision and no updates a step late");
  command->add_flag("--any-numerics", question.any_numerics,
                    "rank ways that change the numerics among the others, not behind them");
  command->add_flag("--research", question.research,
                    "also what no program at hand does: planned layouts, other allocators, orders, schedules");
  command->add_option("--sequence", question.sequence, "tokens of a sequence")
      ->check(positive_number())
      ->type_name("TOKENS");
  command->add_option("--global-batch", question.global_batch, "sequences of a step, of all GPUs")
      ->check(positive_number())
      ->type_name("N");
  add_reserve_option(*command, call->reserve);
  command->add_option("--output", call->output, "write the best way as a scenario")->to_write()->type_name("FILE");
  add_store_option(*command, call->store);
  command->add_option("--jobs", call->jobs, "threads (default: one per core)")->range(1, 1024)->type_name("N");
  command
      ->add_option("--effort", call->effort,
                   "how much is replayed, of what the search does by default (1); the answer does not depend on the "
                   "machine")
      ->range(0.01, 1000.0)
      ->type_name("N");
  command->add_option("--budget", call->seconds, "stop after so long with the best so far")
      ->check(positive_number())
      ->type_name("SECONDS");
  command->add_option("--replays", question.replays, "ways replayed, at most (200)")
      ->check(positive_number())
      ->type_name("N");
  command->add_flag("--all", call->all, "show every way that was tried");
  command
      ->add_option("--set", question.settings,
                   "change a value of the scenario, e.g. model.precision=bf16; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->callback([call, &context] { run_fit(context, *call); });
}

}  // namespace spillway::cli
