#include "cli/commands/sweep_command.h"

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/mpi_launch.h"
#include "cli/options/store_option.h"
#include "cli/options/text_page.h"
#include "cli/output/progress.h"
#include "cli/output/sweep_plot.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"
#include "reports/sweep_database.h"
#include "reports/sweep_report.h"
#include "studies/offload/result_figures.h"
#include "studies/sweep/sweep_check.h"
#include "studies/sweep/sweep_origin.h"
#include "studies/sweep/sweep_point.h"
#include "studies/sweep/sweep_run.h"
#include "studies/sweep/sweep_workers.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t many_points = 100'000'000;

struct SweepCall {
  std::string kept;  // of replays
  std::string file, output, shard, database;
  std::vector<std::string> stores, plots;
  bool resumes = false, explains = false, all = false;
  std::size_t jobs = 0, check = 0;
  std::optional<std::int64_t> point;
  SweepJob* job = nullptr;  // the MPI job that this process is one of; none: it is alone
  std::uint64_t seed = 1;
};

std::string points_text(std::int64_t count) { return fmt::format("{}", count); }

void print_reasons(Context& context, const SweepFile& file, const SweepOutcome& outcome) {
  SweepSpace space(file);
  Table table({"configurations", "why", "first"});
  for (const auto& [reason, count] : outcome.left_out)
    table.add({points_text(count.points), "left out: " + reason, space.label(space.at(count.example))});
  for (const auto& [reason, count] : outcome.invalid)
    table.add({points_text(count.points), "invalid: " + reason, space.label(space.at(count.example))});
  const auto plain = [&table](std::int64_t count, const char* why) {
    if (count > 0) table.add({points_text(count), why, ""});
  };
  plain(outcome.unable, "can't meet the requirements, by estimates with their margins");
  plain(outcome.beaten, "beaten by another configuration, by estimates with their margins");
  plain(outcome.beaten_by_replay, "beaten by a simulated configuration, with the margins of the estimates");
  plain(outcome.not_replayed, "remain: more than the sweep simulates");
  plain(static_cast<std::int64_t>(outcome.rows.size()), "simulated");
  print(context, table);
  if (!context.rows_only()) print("\n");
}

// Labels of a row and of its twins, by axis: what differs stands beside each other ("0 = 1").
std::vector<std::string> merged_options(const SweepOutcome& outcome, const SweepRow& row) {
  std::vector<std::string> options = row.options;
  std::vector<std::set<std::string>> seen(options.size());
  for (std::size_t axis = 0; axis < options.size(); ++axis) seen[axis].insert(options[axis]);
  for (const SweepRow& other : outcome.rows)
    if (other.twin_of == row.number)
      for (std::size_t axis = 0; axis < options.size(); ++axis)
        if (seen[axis].insert(other.options[axis]).second) options[axis] += " = " + other.options[axis];
  return options;
}

void print_lines(const std::string& text) { print(paragraphs(text, page_width(), 2)); }

// Proven, or what isn't.
std::string proof_text(const SweepFile& file, const SweepOutcome& outcome) {
  if (outcome.is_proven())
    return "the Pareto front is proven within the margins: no configuration that was not simulated may beat it\n";
  if (outcome.is_whole && outcome.not_replayed == 0)
    return "the Pareto front is not proven: an estimate was further off than its margin; raise margin or "
           "memory_margin in the sweep's file\n";
  if (outcome.not_replayed == 0) return "";
  std::string best;
  for (std::size_t i = 0; i < file.objectives.size(); ++i)
    best += fmt::format("{}{} {:.4g}", best.empty() ? "" : ", ", to_string(file.objectives[i]), outcome.unproven[i]);
  return fmt::format(
      "the Pareto front is not proven: {} configurations remain after {} simulations; within the margins they may "
      "reach {} (in SI units; lifetime as 1 / years)\n",
      outcome.not_replayed, outcome.replays, best);
}

// Why points can't run, of most first, with where: a value may be at fault wherever it stands.
std::string invalid_text(const SweepFile& file, const SweepOutcome& outcome) {
  constexpr std::size_t most = 3;
  std::vector<std::pair<std::string, SweepReason>> reasons(outcome.invalid.begin(), outcome.invalid.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second.points > b.second.points; });
  SweepSpace space(file);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, reasons.size()); ++i)
    text += fmt::format("invalid, {} of them: {} (first: {})\n", reasons[i].second.points, reasons[i].first,
                        space.label(space.at(reasons[i].second.example)));
  if (reasons.size() > most)
    text += fmt::format("and for {} reasons more (--explain-pruning)\n", reasons.size() - most);
  return text;
}

// What the configuration that comes nearest lacks, and by how much.
std::string nearest_text(const SweepFile& file, const SweepOutcome& outcome) {
  const std::optional<SweepShortfall> nearest = nearest_to_meet(file, outcome);
  if (!nearest) return "no configuration meets the requirements\n";
  std::string text = "no configuration meets the requirements; the nearest is " + nearest->row->candidate.name + ":\n";
  for (const Miss& miss : nearest->misses)
    text +=
        "- " + miss.words + (std::isfinite(miss.share) ? fmt::format(" (by {})", percent_text(miss.share)) : "") + "\n";
  return text;
}

Table rows_table(const SweepFile& file, const SweepOutcome& outcome, bool all) {
  std::vector<std::string> headings;
  for (const SweepAxis& axis : file.axes) headings.push_back(axis.name);
  const std::size_t axes = headings.size();
  for (const char* heading :
       {"step time (s)", "80 % within", "reserved (GiB)", "GPUs", "tokens/s", "MFU (%)", "kWh per 1e6 tokens"})
    headings.emplace_back(heading);
  const auto asks = [&file](Objective objective) {
    return std::find(file.objectives.begin(), file.objectives.end(), objective) != file.objectives.end();
  };
  if (asks(Objective::cost_per_token)) headings.emplace_back("USD per 1e6 tokens");
  if (asks(Objective::gpu_time_per_token)) headings.emplace_back("GPU hours per 1e6 tokens");
  headings.emplace_back("life (years)");
  const std::size_t figures = headings.size() - axes;
  headings.emplace_back("binds");
  headings.emplace_back("front");
  Table table(headings, axes);
  for (const SweepRow& row : outcome.rows) {
    if (row.twin_of || (!all && !row.on_front)) continue;
    std::vector<std::string> cells = merged_options(outcome, row);
    const Figures& metrics = row.replayed;
    if (!row.ran()) {
      for (std::size_t i = 0; i < figures; ++i) cells.emplace_back("-");
      cells.push_back(row.error);
      cells.emplace_back("no");
    } else {
      cells.push_back(fmt::format("{:.4g}", metrics.step_seconds));
      cells.push_back(range_cell(row.result.step_time_range, metrics.step_seconds));
      cells.push_back(metrics.peak_bytes > 0 ? fmt::format("{:.2f}", metrics.peak_bytes / 1073741824.0) : "-");
      cells.push_back(fmt::format("{:.0f}", metrics.gpus));
      cells.push_back(metrics.step_seconds > 0 ? fmt::format("{:.4g}", metrics.tokens_per_step / metrics.step_seconds)
                                               : "-");
      cells.push_back(fmt::format("{:.1f}", row.result.mfu * 100));
      // Without tokens (a capture) an objective is of the whole step, which is no figure of these columns.
      const auto per_token = [&metrics](Objective objective, double factor) {
        return metrics.tokens_per_step > 0 ? fmt::format("{:.4g}", metrics.value(objective) * factor) : "-";
      };
      cells.push_back(metrics.rates.busy_watts > 0 ? per_token(Objective::energy_per_token, 1 / 3.6) : "-");
      if (asks(Objective::cost_per_token)) cells.push_back(per_token(Objective::cost_per_token, 1e6));
      if (asks(Objective::gpu_time_per_token)) cells.push_back(per_token(Objective::gpu_time_per_token, 1e6 / 3600));
      cells.push_back(life_cell(metrics.rated_years, metrics.life_years));
      const Verdict verdict = row.result.verdict();
      cells.push_back(verdict == Verdict::does_not_fit
                          ? verdict_note(verdict)
                          : std::string(to_string(row.result.binding)) + verdict_note(verdict, " (", ")"));
      cells.emplace_back(row.on_front ? "yes" : "no");
    }
    table.add(std::move(cells));
  }
  return table;
}

void print_outcome(Context& context, const SweepCall& call, const SweepFile& file, const SweepOutcome& outcome) {
  bool answered = false, in_doubt = false;
  std::size_t unknown = 0;
  std::string why;
  for (const SweepRow& row : outcome.rows) {
    answered |= row.on_front;
    if (!row.ran() || row.result.verdict() != Verdict::unknown) continue;
    in_doubt |= row.result.is_in_doubt();
    if (unknown++ == 0) why = row.result.why_unknown();
  }
  if (!answered) context.exit_code = in_doubt ? exit_not_known : exit_answer_is_no;
  if (unknown > 0)
    warn(context,
         fmt::format("for {} simulated configurations it is unknown whether they fit, {}{}", unknown, why,
                     file.must_fit ? R"(: they don't count (to ask for time alone: "require": {"fits": false}))" : ""));
  if (outcome.screened == 0 && outcome.is_whole && !outcome.invalid.empty()) {
    const auto fewer = [](const auto& a, const auto& b) { return a.second.points < b.second.points; };
    const auto most = std::max_element(outcome.invalid.begin(), outcome.invalid.end(), fewer);
    throw InputError(file.path, "", fmt::format("no configuration can run; the commonest reason: {}", most->first),
                     "correct the base or the axes; --explain-pruning on a part that runs shows each reason");
  }
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
  print_lines(fmt::format(
      "\n{} configurations: {} left out by rules, {} invalid, {} estimated; {} can't meet the requirements, {} beaten "
      "by estimates, {} by simulations; {} simulated{}\n",
      outcome.points, left_out(outcome.left_out), left_out(outcome.invalid), outcome.screened, outcome.unable,
      outcome.beaten, outcome.beaten_by_replay, outcome.rows.size(),
      static_cast<std::int64_t>(outcome.rows.size()) > outcome.replays
          ? fmt::format(" by {} simulations: the others are the same steps", outcome.replays)
          : ""));
  print_lines(invalid_text(file, outcome));
  if (answered || !outcome.is_proven()) print_lines(proof_text(file, outcome));
  if (outcome.time_error.compared > 0)
    print_lines(
        fmt::format("estimate against simulation, {} configurations: step time median {}, 90th percentile {}, worst {} "
                    "(margin {}); "
                    "peak median {}, 90th percentile {}, worst {} (margin {})\n",
                    outcome.time_error.compared, percent_text(outcome.time_error.median, 2),
                    percent_text(outcome.time_error.p90, 2), percent_text(outcome.time_error.worst, 2),
                    percent_text(file.margin, 2), percent_text(outcome.memory_error.median, 2),
                    percent_text(outcome.memory_error.p90, 2), percent_text(outcome.memory_error.worst, 2),
                    percent_text(file.memory_margin, 2)));
  if (outcome.time_above_bound.compared > 0)
    print_lines(fmt::format(
        "estimated by a lower bound of the step time, {} configurations: simulations lie above it by {} in the "
        "median, {} at the 90th percentile; {} below\n",
        outcome.time_above_bound.compared, percent_text(outcome.time_above_bound.median, 2),
        percent_text(outcome.time_above_bound.p90, 2), outcome.below_bound));
  if (!answered) print_lines(nearest_text(file, outcome));
}

void print_check(Context& context, const SweepFile& file, const SweepCheck& result) {
  if (!result.wrong.empty()) context.exit_code = exit_answer_is_no;
  if (context.json()) {
    Json json = json_document("spillway.sweep_check");
    json["sampled"] = result.sampled;
    json["called_invalid"] = result.invalid;
    json["pruned"] = result.pruned;
    json["on_front"] = result.on_front;
    json["wrongly_pruned"] = Json::array();
    for (const SweepCheck::Wrong& wrong : result.wrong)
      json["wrongly_pruned"].push_back({{"point", wrong.label}, {"why", wrong.why}});
    json["groups"] = Json::array();
    for (const SweepCheck::Group& group : result.groups) {
      Json& row = json["groups"].emplace_back(Json{{"name", group.name},
                                                   {"step_time", sweep_error_json(group.time)},
                                                   {"peak_reserved", sweep_error_json(group.memory)}});
      if (group.above_bound.compared == 0) continue;
      row["step_time_above_bound"] = sweep_error_json(group.above_bound);
      row["below_bound"] = group.below_bound;
    }
    return print_json(json);
  }
  Table table({"configurations", "simulated", "time, median", "90th", "worst", "peak, median", "90th", "worst"});
  for (const SweepCheck::Group& group : result.groups) {
    if (group.time.compared == 0) continue;
    table.add({group.name, std::to_string(group.time.compared), percent_text(group.time.median, 2),
               percent_text(group.time.p90, 2), percent_text(group.time.worst, 2), percent_text(group.memory.median, 2),
               percent_text(group.memory.p90, 2), percent_text(group.memory.worst, 2)});
  }
  print(context, table);
  if (context.rows_only()) return;
  print_lines(fmt::format(
      "\n{} configurations drawn ({} more invalid), {} pruned with margins of {} and {}; {} on the front of "
      "all simulations, {} of these pruned\n",
      result.sampled, result.invalid, result.pruned, percent_text(file.margin, 2), percent_text(file.memory_margin, 2),
      result.on_front, result.wrong.size()));
  for (const SweepCheck::Wrong& wrong : result.wrong)
    print(fmt::format("pruned, though on the front: {} ({})\n", wrong.label, wrong.why));
}

void check_by_replays(Context& context, const SweepCall& call, const SweepFile& file, SweepWorkers& workers,
                      SweepStore& store, const SweepOptions& options) {
  SweepCheck result;
  run_stoppable([&] { result = check_screen(file, call.check, call.seed, workers, store, options.progress); });
  if (is_interrupted()) throw Cancelled();
  print_check(context, file, result);
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

// How fast it goes and when it may be done, of one kind of work at a time.
class Pace {
 public:
  std::string line(const std::string& what, std::int64_t done, std::int64_t all) {
    if (what != what_) {
      what_ = what;
      began_ = std::chrono::steady_clock::now();
      first_ = done;
    }
    std::string words = fmt::format("{}: {} of {}", what, done, all);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (what == screening) screened_seconds_ = seconds;
    if (seconds < 1 || done <= first_) return words;
    const double rate = static_cast<double>(done - first_) / seconds;
    const double left = static_cast<double>(all - done) / rate;
    // Of a screen most points may be left out by rules: only valid ones make a rate, known when it is done.
    const std::string rate_text = what == screening ? "" : fmt::format(", {:.3g} a second", rate);
    return words + rate_text +
           fmt::format(", {:.0f}:{:02.0f} left at most", std::floor(left / 60),
                       std::floor(left - 60 * std::floor(left / 60)));
  }
  // Of all that was screened, until the last report of it.
  [[nodiscard]] double screened_seconds() const { return screened_seconds_; }

 private:
  static constexpr std::string_view screening = "configurations estimated";
  double screened_seconds_ = 0;
  std::string what_;
  std::chrono::steady_clock::time_point began_;
  std::int64_t first_ = 0;
};

SweepOptions options_of(const SweepCall& call, SweepWorkers& workers, const Progress& progress, Pace& pace) {
  SweepOptions options;
  parse_shard(call.shard, options);
  options.workers = &workers;
  options.progress = [&progress, &pace](const std::string& what, std::int64_t done, std::int64_t all) {
    return progress.show(pace.line(what, done, all)) && !is_interrupted();
  };
  return options;
}

void run_sweep_call(Context& context, const SweepCall& call, SweepFile file, SweepStore& store) {
  const Progress progress(context);
  StoreInUse kept(context, call.kept);
  file.replays_kept = kept.get();
  if (!call.database.empty()) check_sweep_database(call.database);
  Pace pace;
  std::vector<SweepPlot> plots;
  for (const std::string& text : call.plots) plots.push_back(parse_plot(text, file));
  std::optional<oneapi::tbb::global_control> jobs;
  if (call.jobs > 0) jobs.emplace(oneapi::tbb::global_control::max_allowed_parallelism, call.jobs);
  const std::unique_ptr<SweepWorkers> workers =
      call.job != nullptr ? call.job->workers(file) : std::make_unique<LocalWorkers>(file);
  const SweepOptions options = options_of(call, *workers, progress, pace);
  if (call.check > 0 && (!call.plots.empty() || !call.shard.empty()))
    throw InputError("--check-screen", "", "it draws points of the whole sweep and makes no picture",
                     "leave out --shard and --plot");
  if (call.check > 0) return check_by_replays(context, call, file, *workers, store, options);
  SweepOutcome outcome;
  try {
    run_stoppable([&] {
      outcome = run_sweep(file, options, store);
      for (const SweepPlot& plot : plots)
        if (!is_interrupted()) write_plot(plot, file, outcome, *workers, store);
    });
  } catch (const Cancelled&) {
  }
  if (is_interrupted()) {
    note(context, call.output.empty() ? "interrupted: nothing is kept without --output"
                                      : "interrupted: go on with --resume --output " + call.output);
    throw Cancelled();
  }
  if (!call.database.empty()) write_sweep_database(call.database, file, outcome);
  if (pace.screened_seconds() > 1)
    note(context,
         fmt::format("{} valid configurations were estimated in {:.1f} s: {:.3g} a second", outcome.screened,
                     pace.screened_seconds(), static_cast<double>(outcome.screened) / pace.screened_seconds()));
  if (options.shards > 1) note(context, "this is one shard's own answer; `spillway merge` gives that of the whole");
  print_outcome(context, call, file, outcome);
}

// Is the store this sweep's, and are its profiles and models as they were?
void check_same(Context& context, const std::string& store, const SweepOrigin& origin, const SweepFile& file) {
  if (parse_sweep(origin, store).kind != file.kind)
    throw InputError(store, "", "the store is of another sweep than " + file.path,
                     "name another store; only title, note and replays may change");
  if (origin.digest != file.digest)
    warn(context, store +
                      ": profiles, models or files that the sweep names, or the program, have changed since: what "
                      "is stored is not used");
}

// A point as a scenario, to --output or standard output.
void write_point(const SweepCall& call, const SweepFile& file) {
  const bool is_shown = call.output.empty() || call.output == "-";
  const std::filesystem::path folder =
      is_shown ? std::filesystem::current_path() : std::filesystem::absolute(call.output).parent_path();
  const std::string text = point_scenario(file, *call.point, folder.string());
  if (is_shown) return print(text);
  OutputFile out(call.output);
  out.write(text);
  out.commit();
}

void run_sweep_command(Context& context, const SweepCall& call) {
  if (call.job == nullptr) continue_under_mpi();
  if (call.job != nullptr && !call.job->leads())
    return call.job->serve([&call] { return load_sweep(call.file); }, std::max<std::size_t>(call.jobs, 1));
  const SweepFile file = load_sweep(call.file);
  if (call.point) return write_point(call, file);
  if (file.points() > many_points && call.shard.empty() && call.job == nullptr)
    note(context,
         fmt::format("{:.3g} configurations before conditions: if most remain, their estimates take about {:.1g} "
                     "core hours; --shard and mpirun spread it over machines",
                     static_cast<double>(file.points()), static_cast<double>(file.points()) / 150e3 / 3600));
  if (call.output.empty()) {
    SweepStore store;
    return run_sweep_call(context, call, file, store);
  }
  std::error_code none;
  const bool is_there =
      std::filesystem::is_regular_file(call.output, none) && !std::filesystem::is_empty(call.output, none);
  if (is_there && !call.resumes) {
    SweepStore().read(call.output);  // refuses what is no store
    throw InputError(call.output, "", "the store is there already", "go on with it by --resume, or name another file");
  }
  SweepStore store(call.output);
  for (const std::string& repair : store.repairs()) warn(context, repair);
  const auto origin = origin_in(store, call.output);
  if (origin) check_same(context, call.output, *origin, file);
  append_origin(store, file);
  try {
    run_sweep_call(context, call, file, store);
  } catch (const InputError&) {
    if (!origin && store.size() == 1) std::filesystem::remove(call.output, none);  // holds no result
    throw;
  }
}

void run_merge_command(Context& context, const SweepCall& call) {
  SweepStore store;
  std::optional<SweepFile> file;
  for (const std::string& path : call.stores) {
    SweepStore one;
    one.read(path);
    for (const std::string& repair : one.repairs()) warn(context, repair);
    const std::optional<SweepOrigin> origin = origin_in(one, path);
    if (!origin) throw InputError(path, "", "no sweep's store", "name what `spillway sweep --output` wrote");
    if (!file) file = parse_sweep(*origin, origin->path);
    check_same(context, path, *origin, *file);
    one.copy_into(store);
  }
  if (call.output.empty()) return run_sweep_call(context, call, *file, store);
  // Opened last, so that nothing is made or changed where an input is refused.
  SweepStore kept(call.output);
  for (const std::string& repair : kept.repairs()) warn(context, repair);
  if (const auto other = origin_in(kept, call.output)) check_same(context, call.output, *other, *file);
  store.copy_into(kept);
  run_sweep_call(context, call, *file, kept);
}

}  // namespace

void add_sweep_commands(Command& app, Context& context, SweepJob* job) {
  const auto call = std::make_shared<SweepCall>();
  call->job = job;
  Command* sweep = app.add_subcommand("sweep", "Search a space of scenarios: all estimated, the best simulated");
  sweep->add_option("FILE", call->file, "sweep file (docs/how-to/run-a-sweep.md)")->required();
  sweep->add_option("--output", call->output, "keep what is found in this store")->to_write()->type_name("STORE");
  add_store_option(*sweep, call->kept);
  sweep->add_flag("--resume", call->resumes, "go on with a store that is there");
  sweep->add_option("--shard", call->shard, "estimate and simulate part i of N only; `spillway merge` joins them")
      ->type_name("i/N");
  sweep
      ->add_option("--check-screen", call->check,
                   "instead of a sweep: draw N configurations, simulate them all, and check that the estimate leaves "
                   "out none of the best")
      ->type_name("N");
  sweep
      ->add_option("--point", call->point,
                   "instead of a sweep: write point N, as \"point\" in JSON numbers them, as a scenario to --output")
      ->type_name("N");
  sweep->add_option("--seed", call->seed, "seed of the configurations that --check-screen draws (1)")->type_name("N");
  Command* merge = app.add_subcommand("merge", "Join the stores of a sweep's shards into its answer");
  merge->add_option("STORE", call->stores, "stores of one sweep")->required();
  merge->add_option("--output", call->output, "keep everything in this store")->to_write()->type_name("STORE");
  for (Command* command : {sweep, merge}) {
    command->add_option("--jobs", call->jobs, "threads (default: one per core)")->range(1, 1024)->type_name("N");
    command->add_flag("--explain-pruning", call->explains,
                      "why configurations were not simulated, with an example of each");
    command
        ->add_option("--plot", call->plots,
                     "write a picture: front[:X,Y]=F.svg over two objectives, map:AXIS,AXIS[,OBJECTIVE]=F.svg, or "
                     "tornado[:OBJECTIVE]=F.svg; may be repeated")
        ->to_write()
        ->type_name("KIND=FILE")
        ->allow_extra_args(false);
    command
        ->add_option("--database", call->database,
                     "write every simulated configuration into this SQLite database (docs/how-to/run-a-sweep.md)")
        ->to_write()
        ->type_name("FILE");
    command->add_flag("--all", call->all, "show every simulated configuration, not the Pareto front alone");
  }
  sweep->callback([&context, call] { run_sweep_command(context, *call); });
  merge->callback([&context, call] { run_merge_command(context, *call); });
}

}  // namespace spillway::cli
