#include "cli/sweep_command.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "planners/sweep/sweep_report.h"
#include "planners/sweep/sweep_run.h"
#include "traces/base/byte_source.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* file_key = "sweep-file";  // of the record that holds the sweep itself

struct SweepCall {
  std::string file, output, shard;
  std::vector<std::string> stores;
  bool resumes = false, explains = false, all = false;
  std::size_t jobs = 0;
};

std::string points_text(std::int64_t count) { return fmt::format("{}", count); }

void print_reasons(Context& context, const SweepFile& file, const SweepOutcome& outcome) {
  SweepSpace space(file);
  Table table({"points", "why", "first"});
  for (const auto& [reason, count] : outcome.left_out)
    table.add({points_text(count.points), "left out: " + reason, space.label(space.at(count.example))});
  for (const auto& [reason, count] : outcome.invalid)
    table.add({points_text(count.points), "invalid: " + reason, space.label(space.at(count.example))});
  const auto plain = [&table](std::int64_t count, const char* why) {
    if (count > 0) table.add({points_text(count), why, ""});
  };
  plain(outcome.unable, "can't meet the requirements, by the screen with its margins");
  plain(outcome.beaten, "beaten by another point, by the screen with its margins");
  plain(outcome.beaten_by_replay, "beaten by a replayed point, the screen's margins allowed for");
  plain(outcome.not_replayed, "remain: more than the sweep's replays");
  plain(static_cast<std::int64_t>(outcome.rows.size()), "replayed");
  print(context, table);
  if (!context.rows_only()) print("\n");
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

Table rows_table(const SweepFile& file, const SweepOutcome& outcome, bool all) {
  std::vector<std::string> headings;
  for (const SweepAxis& axis : file.axes) headings.push_back(axis.name);
  for (const char* heading :
       {"step time (s)", "reserved (GiB)", "GPUs", "tokens/s", "MFU (%)", "life (years)", "binds", "front"})
    headings.emplace_back(heading);
  Table table(headings);
  for (const SweepRow& row : outcome.rows) {
    if (!all && !row.on_front) continue;
    std::vector<std::string> cells = row.options;
    const SweepMetrics& metrics = row.replayed;
    if (!row.failure.empty()) {
      for (int i = 0; i < 6; ++i) cells.emplace_back("-");
      cells.push_back(row.failure);
      cells.emplace_back("no");
    } else {
      cells.push_back(fmt::format("{:.4g}", metrics.step_seconds));
      cells.push_back(fmt::format("{:.2f}", metrics.peak_bytes / 1073741824.0));
      cells.push_back(fmt::format("{:.0f}", metrics.gpus));
      cells.push_back(metrics.step_seconds > 0 ? fmt::format("{:.4g}", metrics.tokens_per_step / metrics.step_seconds)
                                               : "-");
      cells.push_back(fmt::format("{:.1f}", row.mfu * 100));
      cells.push_back(std::isfinite(metrics.life_years) ? fmt::format("{:.3g}", metrics.life_years) : "-");
      cells.push_back(row.fits ? row.binding : "does not fit");
      cells.emplace_back(row.on_front ? "yes" : "no");
    }
    table.add(std::move(cells));
  }
  return table;
}

void print_outcome(Context& context, const SweepCall& call, const SweepFile& file, const SweepOutcome& outcome) {
  bool answered = false;
  for (const SweepRow& row : outcome.rows) answered |= row.on_front;
  if (!answered) context.exit_code = exit_answer_is_no;
  if (context.json()) return print_json(sweep_json(file, outcome));
  if (call.explains) print_reasons(context, file, outcome);
  const Table table = rows_table(file, outcome, call.all);
  if (!table.empty()) print(context, table);
  if (context.rows_only()) return;
  const auto left_out = [](const std::map<std::string, SweepReason>& reasons) {
    std::int64_t sum = 0;
    for (const auto& [reason, count] : reasons) sum += count.points;
    return sum;
  };
  print(fmt::format(
      "\n{} points: {} left out by rules, {} invalid, {} screened; {} can't meet the requirements, {} beaten in the "
      "screen, {} by replays; {} replayed{}\n",
      outcome.points, left_out(outcome.left_out), left_out(outcome.invalid), outcome.screened, outcome.unable,
      outcome.beaten, outcome.beaten_by_replay, outcome.rows.size(),
      outcome.not_replayed > 0 ? fmt::format(", {} remain: the front may miss some of them", outcome.not_replayed)
                               : ""));
  if (outcome.time_error.compared > 0)
    print(fmt::format(
        "screen against replay, {} points: step time median {}, 90th percentile {}, worst {} (margin {}); "
        "peak median {}, 90th percentile {}, worst {} (margin {})\n",
        outcome.time_error.compared, percent(outcome.time_error.median), percent(outcome.time_error.p90),
        percent(outcome.time_error.worst), percent(file.margin), percent(outcome.memory_error.median),
        percent(outcome.memory_error.p90), percent(outcome.memory_error.worst), percent(file.memory_margin)));
  if (!answered) print("no point meets the requirements\n");
}

void parse_shard(const std::string& text, SweepOptions& options) {
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, options.shard);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, options.shards) : first;
  if (!slash || second.ec != std::errc() || second.ptr != end || options.shards < 1 || options.shard < 0 ||
      options.shard >= options.shards)
    throw InputError("--shard", text, "expected i/N with 0 <= i < N", "for four shards: 0/4, 1/4, 2/4, 3/4");
}

void run(Context& context, const SweepCall& call, const SweepFile& file, SweepStore& store) {
  SweepOptions options;
  parse_shard(call.shard, options);
  const Progress progress(context);
  options.progress = [&progress](const std::string& what, std::int64_t done, std::int64_t all) {
    return progress.show(fmt::format("{}: {} of {}", what, done, all)) && !is_interrupted();
  };
  std::optional<oneapi::tbb::global_control> jobs;
  if (call.jobs > 0) jobs.emplace(oneapi::tbb::global_control::max_allowed_parallelism, call.jobs);
  const SweepOutcome outcome = run_sweep(file, options, store);
  if (is_interrupted()) {
    note(context, call.output.empty() ? "interrupted: nothing is kept without --output"
                                      : "interrupted: go on with --resume --output " + call.output);
    throw Cancelled();
  }
  if (options.shards > 1) note(context, "this is one shard's own answer; `spillway merge` gives that of the whole");
  print_outcome(context, call, file, outcome);
}

void run_sweep_command(Context& context, const SweepCall& call) {
  const SweepFile file = load_sweep(call.file);
  if (call.output.empty()) {
    SweepStore store;
    return run(context, call, file, store);
  }
  const bool is_there = std::filesystem::exists(call.output) && std::filesystem::file_size(call.output) > 0;
  if (is_there && !call.resumes)
    throw InputError(call.output, "", "the store is there already", "go on with it by --resume, or name another file");
  SweepStore store(call.output);
  for (const std::string& repair : store.repairs()) warn(context, repair);
  store.append(file_key,
               Json{{"key", file_key}, {"folder", file.folder}, {"path", file.path}, {"sweep", file.text}}.dump());
  run(context, call, file, store);
}

void run_merge_command(Context& context, const SweepCall& call) {
  SweepStore memory;
  std::optional<SweepStore> kept;
  if (!call.output.empty()) kept.emplace(call.output);
  SweepStore& store = kept ? *kept : memory;
  std::string sweep;
  for (const std::string& path : call.stores) {
    SweepStore one;
    one.read(path);
    for (const std::string& repair : one.repairs()) warn(context, repair);
    const auto record = one.find(file_key);
    if (!record) throw InputError(path, "", "no sweep's store", "name what `spillway sweep --output` wrote");
    if (sweep.empty()) sweep = *record;
    if (Json::parse(sweep)["sweep"] != Json::parse(*record)["sweep"])
      throw InputError(path, "", "the store is of another sweep than " + call.stores.front(),
                       "merge stores of one file");
    one.copy_into(store);
  }
  const Json record = Json::parse(sweep);
  run(context, call, parse_sweep(record["sweep"], record["path"], record["folder"]), store);
}

}  // namespace

void add_sweep_commands(CLI::App& app, Context& context) {
  const auto call = std::make_shared<SweepCall>();
  CLI::App* sweep =
      app.add_subcommand("sweep", "Search a space of scenarios: screened in closed form, the best replayed");
  sweep->add_option("FILE", call->file, "sweep file (docs/sweep.md)")->required();
  sweep->add_option("--output", call->output, "keep what is found in this store")->type_name("STORE");
  sweep->add_flag("--resume", call->resumes, "go on with a store that is there");
  sweep->add_option("--shard", call->shard, "screen and replay part i of N only; `spillway merge` joins them")
      ->type_name("i/N");
  CLI::App* merge = app.add_subcommand("merge", "Join the stores of a sweep's shards into its answer");
  merge->add_option("STORE", call->stores, "stores of one sweep")->required();
  merge->add_option("--output", call->output, "keep everything in this store")->type_name("STORE");
  for (CLI::App* command : {sweep, merge}) {
    command->add_option("--jobs", call->jobs, "threads (default: one per core)")->type_name("N");
    command->add_flag("--explain-pruning", call->explains, "why points were not replayed, with an example of each");
    command->add_flag("--all", call->all, "show every replayed point, not the front alone");
  }
  sweep->callback([&context, call] { run_sweep_command(context, *call); });
  merge->callback([&context, call] { run_merge_command(context, *call); });
}

}  // namespace spillway
