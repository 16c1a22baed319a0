#include "cli/commands/capacity_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_text.h"
#include "base/short_text.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/options/reserve_option.h"
#include "cli/options/setting_options.h"
#include "cli/options/store_option.h"
#include "cli/options/text_page.h"
#include "cli/output/cell.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"
#include "planners/technique/technique_table.h"
#include "studies/capacity/capacity.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CapacityCall {
  std::string store;  // of replays
  std::string path;
  std::vector<std::string> settings;
  std::string reserve;
  CapacityFlags flags;
  bool list = false;
};

std::string hex(std::uint64_t fingerprint) { return fmt::format("{:016x}", fingerprint); }

Json trial_json(const CapacityTrial& trial) {
  const Result& result = trial.row.result;
  Json out = {{"value", trial.value},
              {"holds", trial.holds},
              {"replayed", trial.replayed},
              {"gpus", trial.row.gpus},
              {"parameters", trial.parameters}};
  if (!trial.why_not.empty()) out["why_not"] = trial.why_not;
  if (trial.needed() > Bytes(0))
    out[trial.replayed ? "peak_reserved_bytes" : "least_state_bytes"] = trial.needed().count();
  if (trial.capacity() > Bytes(0)) {
    out["capacity_bytes"] = trial.capacity().count();
    if (trial.replayed) out["reserve_bytes"] = result.reserve.bytes().count();
    if (trial.replayed) out["free_bytes"] = trial.free().count();
  }
  if (!trial.layout.empty()) out["layout"] = trial.layout;
  if (trial.layouts_replayed > 0) out["layouts_replayed"] = trial.layouts_replayed;
  if (!trial.row.candidate.edits.empty()) out["settings"] = trial.row.candidate.edits;
  if (trial.usd) out["usd"] = *trial.usd;
  if (trial.usd_per_hour) out["usd_per_hour"] = *trial.usd_per_hour;
  if (trial.kilowatts > 0) out["kilowatts"] = trial.kilowatts;
  if (!trial.replayed) return out;
  put_verdict(out, result.verdict());
  out["step_time_ns"] = whole_nanoseconds(result.step_time);
  out["step_time_range"] = range_json(result.step_time_range);
  out["peak_range"] = range_json(result.peak_range);
  out["tokens_per_second"] = result.tokens_per_second;
  out["mfu"] = result.mfu;
  if (result.memory.peak_allocated > Bytes(0)) {
    out["peak_allocated_bytes"] = result.memory.peak_allocated.count();
    out["binding_resource"] = to_string(result.binding);
  }
  if (const std::optional<double> years = trial.row.life_years()) {
    out["life_years"] = *years;
    out["life_low_years"] = number_or_null(shortest_rated_years(result));
  }
  out["owners"] = Json::array();
  for (const PeakOwner& owner : trial.owners())
    out["owners"].push_back({{"name", owner.name}, {"bytes", owner.bytes.count()}});
  out["fingerprint"] = hex(result.fingerprint);
  return out;
}

Json changes_json(const std::vector<FurtherChange>& changes) {
  Json json = Json::array();
  for (const FurtherChange& change : changes)
    json.push_back({{"change", change.name}, {"holds", change.holds}, {"note", change.note}});
  return json;
}

Json trial_json(const CapacityRequest& request, const CapacityOutcome& outcome) {
  Json document = json_document("spillway.capacity");
  const CapacityAxis& axis = request.axis;
  document["axis"] = {{"name", axis.name}, {"key", axis.key}, {"goal", to_string(axis.goal)},
                      {"from", axis.from}, {"to", axis.to},   {"step", axis.step}};
  document["interrupted"] = outcome.interrupted;
  document["best"] = outcome.best ? Json(outcome.answers[*outcome.best].technique.name) : Json();
  document["answers"] = Json::array();
  for (const CapacityAnswer& answer : outcome.answers) {
    Json entry = {{"technique", answer.technique.name}, {"settings", answer.technique.edits}};
    entry["answer"] = answer.best ? Json(answer.best->value) : Json();
    if (answer.best) entry["at"] = trial_json(*answer.best);
    if (answer.beyond) entry["beyond"] = trial_json(*answer.beyond);
    if (answer.best) entry["margins"] = answer.best->margins(request.constraints);
    if (!answer.changes.empty()) entry["one_step_further"] = changes_json(answer.changes);
    entry["binds"] = answer.binding();
    entry["monotone"] = answer.is_monotone;
    entry["trials"] = answer.trials;
    entry["replays"] = answer.replays;
    if (!answer.refused.empty()) entry["refused"] = answer.refused;
    document["answers"].push_back(std::move(entry));
  }
  document["warnings"] = Json::array();
  return document;
}

std::string axis_text(std::int64_t value, const CapacityAxis& axis) {
  return axis.key == "memory.capacity_bytes" ? gib(Bytes(value)) + " GiB" : std::to_string(value);
}

// What is left at the answer, and what is missing one step further.
std::string beyond_of(const CapacityAnswer& answer, const CapacityAxis& axis) {
  if (!answer.beyond) return answer.best ? "the axis ends" : "";
  const CapacityTrial& trial = *answer.beyond;
  return axis_text(trial.value, axis) + ": " + trial.why_not;
}

// "255-319 ms"; "?" where nobody knows.
std::string short_range(const FigureRange& range, double seconds) {
  if (!range.known) return "?";
  const std::string low = short_duration(seconds * range.low), high = short_duration(seconds * range.high);
  const std::string unit = high.substr(high.find(' '));
  return (low.ends_with(unit) ? low.substr(0, low.size() - unit.size()) : low) + "-" + high;
}

std::vector<Cell> figure_headings(const CapacityRequest& request) {
  std::vector<Cell> headings = {Cell(request.axis.name),
                                {"weights", "parameters (B)"},
                                Cell("GPUs"),
                                {"step", "step (s)"},
                                {"80 %", "80 % within"},
                                Cell("tokens/s"),
                                Cell("MFU"),
                                Cell("peak (GiB)"),
                                Cell("free (GiB)")};
  if (request.layouts.searched) headings.emplace_back("layout");
  if (request.is_priced) headings.emplace_back("1000 USD");
  return headings;
}

std::vector<Cell> trial_cells(const CapacityRequest& request, const CapacityTrial& best) {
  const Result& result = best.row.result;
  const double seconds = to_seconds(result.step_time), billions = static_cast<double>(best.parameters) / 1e9;
  const Cell unknown("-");
  const std::string value = axis_text(best.value, request.axis);
  const auto in_thousands = [](double usd, const char* behind, const char* behind_program) {
    return Cell(three_digits(usd / 1000) + behind, fmt::format("{:.4g}{}", usd / 1000, behind_program));
  };
  std::vector<Cell> cells = {
      {value + (best.only_tight ? " ▲" : ""), value + (best.only_tight ? " (tight)" : "")},
      best.parameters > 0 ? Cell(fmt::format("{:.3g} B", billions), fmt::format("{:.3f}", billions)) : unknown,
      Cell(std::to_string(best.row.gpus)),
      {short_duration(seconds), fmt::format("{:.4f}", seconds)},
      {short_range(result.step_time_range, seconds), range_cell(result.step_time_range, seconds)},
      result.tokens_per_second > 0
          ? Cell(grouped_text(std::llround(result.tokens_per_second)), fmt::format("{:.1f}", result.tokens_per_second))
          : unknown,
      result.mfu > 0 ? Cell(short_percent(result.mfu), fmt::format("{:.3f}", result.mfu)) : unknown,
      {three_digits(in_gib(best.needed())), gib(best.needed())},
      best.capacity() > Bytes(0) ? Cell(three_digits(in_gib(best.free())), gib(best.free())) : unknown};
  if (request.layouts.searched) cells.emplace_back(best.layout);
  if (request.is_priced)
    cells.push_back(best.usd            ? in_thousands(*best.usd, "", "")
                    : best.usd_per_hour ? in_thousands(*best.usd_per_hour, " an hour", "/h")
                                        : unknown);
  return cells;
}

// What stops the next value, and what binds where that says more.
std::string limit_of(const CapacityAnswer& answer, const CapacityAxis& axis) {
  if (!answer.refused.empty()) return "refused: " + answer.refused;
  const std::string beyond = beyond_of(answer, axis), binds = answer.binding();
  return binds.empty() || beyond.ends_with(binds) ? beyond : beyond + "; " + binds;
}

// A column of the sizes that is the same in all rows says nothing to people; the best answer's line has it.
void drop_constant_sizes(std::vector<std::vector<std::string>>& rows) {
  constexpr std::array<std::string_view, 2> sizes = {"weights", "GPUs"};
  for (std::size_t at = rows.front().size(); at-- > 0 && rows.size() > 2;) {
    const bool is_size = std::find(sizes.begin(), sizes.end(), rows.front()[at]) != sizes.end();
    const bool is_constant = std::all_of(rows.begin() + 1, rows.end(),
                                         [&](const std::vector<std::string>& row) { return row[at] == rows[1][at]; });
    if (is_size && is_constant)
      for (std::vector<std::string>& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// By technique: the largest value's figures; for programs what binds and what stops the next value, too.
Table figures_table(const Context& context, const CapacityRequest& request, const CapacityOutcome& outcome) {
  std::vector<std::string> headings = shown_cells(context, figure_headings(request));
  const std::size_t figures = headings.size();
  headings.insert(headings.begin(), "technique");
  if (context.rows_only()) headings.insert(headings.end(), {"binds", "beyond"});
  std::vector<std::vector<std::string>> rows = {std::move(headings)};
  for (const CapacityAnswer& answer : outcome.answers) {
    std::vector<std::string> row =
        answer.best ? shown_cells(context, trial_cells(request, *answer.best)) : std::vector<std::string>{"none"};
    row.resize(figures, "-");
    const bool is_refused = !answer.best && !answer.refused.empty();
    row.insert(row.begin(), context.rows_only() ? answer.technique.name : answer.technique.words);
    if (context.rows_only()) {
      row.push_back(is_refused ? "refused: " + answer.refused : answer.binding());
      row.push_back(is_refused ? "" : beyond_of(answer, request.axis));
    }
    rows.push_back(std::move(row));
  }
  if (!context.rows_only()) drop_constant_sizes(rows);
  Table table(std::move(rows.front()));
  for (std::size_t i = 1; i < rows.size(); ++i) table.add(std::move(rows[i]));
  return table;
}

// Why no technique goes farther: once, where it is the same for all.
void print_limits(const Context& context, const CapacityRequest& request, const CapacityOutcome& outcome) {
  Table limits({"technique", "next"});
  std::set<std::string> different;
  for (const CapacityAnswer& answer : outcome.answers) {
    limits.add({answer.technique.words, limit_of(answer, request.axis)});
    different.insert(limit_of(answer, request.axis));
  }
  if (different.size() == 1 && outcome.best) return;  // said one step further, below
  print("\n");
  print(context, limits);
}

// The best answer's plan and margin, and what would let it go one step further.
void print_largest(const CapacityRequest& request, const CapacityOutcome& outcome) {
  if (!outcome.best) return;
  const CapacityAnswer& answer = outcome.answers[*outcome.best];
  const CapacityTrial& best = *answer.best;
  std::string text = fmt::format(
      "\nbest: {} {} under {}{}{}, on {} GPU{}\n", axis_text(best.value, request.axis), request.axis.name,
      answer.technique.words, best.layout.empty() ? "" : ", layout " + best.layout,
      best.parameters > 0 ? fmt::format(", {:.3g} B weights", static_cast<double>(best.parameters) / 1e9) : "",
      best.row.gpus, best.row.gpus == 1 ? "" : "s");
  std::string margins;
  for (const std::string& margin : best.margins(request.constraints)) margins += (margins.empty() ? "" : "; ") + margin;
  if (!margins.empty()) text += "margin: " + margins + "\n";
  if (answer.beyond) {
    text += fmt::format("one step further, {}: {}\n", axis_text(answer.beyond->value, request.axis),
                        answer.beyond->why_not);
    std::string holds, fails, same;  // same: for the same reason
    for (const FurtherChange& change : answer.changes)
      if (!change.holds && change.note == answer.beyond->why_not)
        same += (same.empty() ? "" : ", ") + change.name;
      else
        (change.holds ? holds : fails) += fmt::format("  {}: {}\n", change.name, change.note);
    if (!holds.empty()) text += "it holds with\n" + holds;
    if (!fails.empty()) text += "not with\n" + fails;
    if (!same.empty()) text += "the same with " + same + "\n";
  }
  print(paragraphs(text, page_width(), 4));
}

void list_techniques(const Context& context) {
  if (context.json()) {
    Json document = json_document("spillway.capacity_techniques");
    document["techniques"] = Json::array();
    for (const TechniqueWay* each : technique_ways())
      document["techniques"].push_back({{"name", each->name}, {"about", each->about}, {"settings", each->settings}});
    return print_json(document);
  }
  Table table({"technique", "is", "settings"});
  for (const TechniqueWay* each : technique_ways()) {
    std::string settings;
    for (const std::string& setting : each->settings) settings += (settings.empty() ? "" : ", ") + setting;
    table.add({each->name, each->about, settings});
  }
  print(context, table);
}

void run_capacity(Context& context, const CapacityCall& call) {
  if (call.list) return list_techniques(context);
  if (call.path.empty()) throw missing_argument("SCENARIO");
  CapacityRequest request = read_capacity_request(call.path, with_reserve(call.settings, call.reserve), call.flags);
  const Progress progress(context);
  StoreInUse store(context, call.store);
  request.store = store.get();
  std::size_t tried = 0;
  const CapacityOutcome outcome = find_capacity(request, [&](const std::string& technique, std::int64_t value) {
    return progress.show(fmt::format("{} values tried; {}: {} = {}", tried++, technique, request.axis.name,
                                     axis_text(value, request.axis))) &&
           !is_interrupted();
  });
  for (const CapacityAnswer& answer : outcome.answers)
    if (answer.best && answer.best->only_tight)
      warn(context, answer.technique.words + ": tight: it runs, but not with the reserve's margin kept free");
  for (const CapacityAnswer& answer : outcome.answers)
    if (!answer.is_monotone)
      warn(context, answer.technique.words +
                        ": some larger values hold again behind ones that don't; the answer is the "
                        "last edge found");
  if (context.json())
    print_json(trial_json(request, outcome));
  else
    print(context, figures_table(context, request, outcome));
  if (!context.json() && !context.rows_only()) {
    print_limits(context, request, outcome);
    print_largest(request, outcome);
  }
  if (outcome.interrupted) note(context, "interrupted: what is missing was not finished");
  if (!outcome.any()) context.exit_code = outcome.is_in_doubt() ? exit_not_known : exit_answer_is_no;
}

}  // namespace

void add_capacity_command(Command& app, Context& context) {
  Command* command = app.add_subcommand(
      "capacity", "Find the largest model, sequence, or batch that fits, or the fewest GPUs, for each technique");
  const auto call = std::make_shared<CapacityCall>();
  CapacityFlags& flags = call->flags;
  CapacitySection& said = flags.said;
  command->add_option("SCENARIO", call->path, "scenario file; its \"capacity\" says what the options leave open");
  command
      ->add_option("--axis", said.axis,
                   "what varies: layers (default), sequence, micro_batch, global_batch, gpus, "
                   "replicas, memory, drives, or a scenario's key such as model.prefetch")
      ->type_name("AXIS");
  const auto of_axis = [&said] { return dimension_of_axis(said.axis); };
  command->add_option("--from", said.from, "smallest value; with a unit of the axis: 16GiB, 8k tokens")
      ->whole(of_axis)
      ->check(positive_number())
      ->type_name("N");
  command->add_option("--to", said.to, "largest value")->whole(of_axis)->check(positive_number())->type_name("N");
  command->add_option("--step", said.step, "from one value to the next")
      ->whole(of_axis)
      ->check(positive_number())
      ->type_name("N");
  command
      ->add_word<CapacityGoal>("--goal", said.goal, capacity_goal_words(),
                               "the last value that holds, or the first (for what must be bought)")
      ->type_name("largest|smallest");
  command
      ->add_option("--technique", flags.techniques,
                   "a bundled one, several joined by + or NAME:key=value,key=value; may be repeated")
      ->type_name("TECHNIQUE")
      ->allow_extra_args(false);
  command->add_flag("--list", call->list, "the bundled techniques");
  command->add_flag("--planned", flags.planned, "also the best plan of all; minutes for a large step");
  command->add_flag("--layouts", flags.layouts,
                    "search tensor and pipeline parallelism and micro-batches at every value, on the scenario's GPUs");
  command->add_option("--machines", said.machines, "8xh100 and the like, separated by commas: every technique on each")
      ->delimiter(',')
      ->type_name("NAME");
  command->add_option("--drives", said.drives, "drive profiles, separated by commas: every technique with each")
      ->delimiter(',')
      ->type_name("MODEL");
  command->add_option("--prices", said.prices, "entries that go over those of the bundled price list")
      ->type_name("FILE");
  Constraints& asked = said.constraints;
  command->add_option("--max-step-time", asked.most_step_seconds, "longest step allowed, in seconds or with a unit")
      ->amount(Dimension::time, "s")
      ->check(positive_number())
      ->type_name("S");
  command->add_option("--min-tokens-per-second", asked.least_tokens_per_second, "lowest throughput allowed")
      ->check(positive_number())
      ->type_name("N");
  command->add_option("--min-mfu", asked.least_mfu, "lowest model flop utilisation allowed, e.g. 0.4")
      ->check(positive_number())
      ->type_name("X");
  command->add_option("--min-life", asked.least_life_years, "shortest SSD lifetime allowed, in years")
      ->amount(Dimension::years, "years")
      ->check(positive_number())
      ->type_name("YEARS");
  command->add_option("--max-cost", asked.most_usd, "what machines and named drives may cost, in USD")
      ->amount(Dimension::money, "USD")
      ->check(positive_number())
      ->type_name("USD");
  command->add_option("--max-power", asked.most_kilowatts, "what they may draw while they train, in kW or with a unit")
      ->amount(Dimension::power, "kW")
      ->check(positive_number())
      ->type_name("KW");
  add_reserve_option(*command, call->reserve);
  add_setting_options(*command, call->settings);
  add_store_option(*command, call->store);
  command->callback([call, &context] { run_stoppable([&] { run_capacity(context, *call); }); });
}

}  // namespace spillway::cli
