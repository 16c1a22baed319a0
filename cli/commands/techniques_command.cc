#include "cli/commands/techniques_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/short_text.h"
#include "cli/options/interrupt.h"
#include "cli/options/setting_options.h"
#include "cli/options/store_option.h"
#include "cli/output/answer_output.h"
#include "cli/output/progress.h"
#include "cli/output/result_report.h"
#include "cli/output/row_report.h"
#include "cli/output/run_page.h"
#include "cli/output/table.h"
#include "planners/offload/drive_life.h"
#include "planners/technique/technique_table.h"
#include "reports/pictures/bars_svg.h"
#include "scenario/machine_power.h"
#include "studies/answer/answer_json.h"
#include "studies/answer/techniques_answer.h"
#include "studies/candidates/compare_techniques.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TechniquesCall {
  std::string store;  // of replays
  std::string scenario, output;
  std::vector<std::string> settings, techniques;
};

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('+', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Json technique_json(const TechniqueRow& each) {
  const std::string& name = each.row.candidate.name;
  Json json = {{"technique", name == plain_technique ? Json::array() : Json(parts_of(name))}};
  json.update(row_json(each.row));
  json["step_time_range"] = each.row.ran() ? range_json(each.row.result.step_time_range) : Json();
  json["peak_range"] = each.row.ran() ? range_json(each.row.result.peak_range) : Json();
  json["step_time_over_plain"] = each.against_plain > 0 ? Json(each.against_plain) : Json();
  json["warnings"] = each.row.result.warnings;
  return json;
}

void print_rows_json(const TechniqueComparison& comparison, const std::string& scenario,
                     const std::optional<studies::Answer>& answer, const std::string& taken_out) {
  Json document = json_document("spillway.techniques");
  document["scenario"] = scenario;
  document["whole"] = comparison.is_whole;
  document["cost_basis"] = told_cost();
  document["warnings"] = Json::array();
  if (!taken_out.empty()) document["warnings"].push_back(taken_out);
  document["rows"] = Json::array();
  for (const TechniqueRow& each : comparison.rows) document["rows"].push_back(technique_json(each));
  document["answer"] = answer ? answer_json(*answer) : Json();
  print_json(document);
}

std::string gigabytes(Bytes bytes) {
  return bytes == Bytes(0) ? "-" : fmt::format("{:.1f}", static_cast<double>(bytes.count()) / 1e9);
}

// The figures that decide, of people in a terminal; what is the same nothing in every row is left out.
struct Column {
  const char* name;
  std::string (*cell)(const TechniqueRow& each);  // of one that ran
};
std::string ratio_cell(const TechniqueRow& each) {
  return each.against_plain > 0 ? fmt::format("{:.2f}", each.against_plain) : "-";
}
std::string gib_cell(const Row& row, Bytes MemoryResult::*figure) {
  return row.result.memory.known ? gib(row.result.memory.*figure) : "-";
}
std::string short_gib_cell(Bytes bytes) { return in_gib(bytes) >= 0.001 ? three_digits(in_gib(bytes)) : "-"; }
const std::vector<Column>& shown_columns() {
  static const std::vector<Column> all = {
      {"GiB left", [](const TechniqueRow& each) { return studies::room_left(each.row.result); }},
      {"step", [](const TechniqueRow& each) { return short_duration(to_seconds(each.row.result.step_time)); }},
      {"ratio", ratio_cell},
      {"reserved (GiB)",
       [](const TechniqueRow& each) {
         return each.row.result.memory.known ? short_gib_cell(each.row.result.memory.peak_reserved) : "-";
       }},
      {"host (GiB)",
       [](const TechniqueRow& each) { return short_gib_cell(each.row.moved.to_host + each.row.moved.from_host); }},
      {"SSDs (GiB)",
       [](const TechniqueRow& each) { return short_gib_cell(each.row.moved.to_drives + each.row.moved.from_drives); }},
      {"SSDs last", [](const TechniqueRow& each) {
         const std::string years = life_cell(each.row.result);
         return years == "-" ? years : years + " years";
       }}};
  return all;
}
const std::vector<Column>& all_columns() {
  static const std::vector<Column> all = {
      {"short of",
       [](const TechniqueRow& each) { return each.row.shortage().empty() ? std::string("-") : each.row.shortage(); }},
      {"step (ms)",
       [](const TechniqueRow& each) { return fmt::format("{:.1f}", to_seconds(each.row.result.step_time) * 1e3); }},
      {"80 % within",
       [](const TechniqueRow& each) {
         return range_cell(each.row.result.step_time_range, to_seconds(each.row.result.step_time) * 1e3);
       }},
      {"/ plain", ratio_cell},
      {"tokens/s",
       [](const TechniqueRow& each) {
         const double rate = each.row.result.tokens_per_second;
         return rate > 0 ? fmt::format("{:.0f}", rate) : std::string("-");
       }},
      {"MFU (%)",
       [](const TechniqueRow& each) {
         return each.row.result.mfu > 0 ? fmt::format("{:.1f}", each.row.result.mfu * 100) : std::string("-");
       }},
      {"allocated (GiB)", [](const TechniqueRow& each) { return gib_cell(each.row, &MemoryResult::peak_allocated); }},
      {"reserved (GiB)", [](const TechniqueRow& each) { return gib_cell(each.row, &MemoryResult::peak_reserved); }},
      {"efficiency (%)",
       [](const TechniqueRow& each) {
         return each.row.result.memory.known ? fmt::format("{:.1f}", each.row.allocator_efficiency() * 100)
                                             : std::string("-");
       }},
      {"host (GB/GPU)",
       [](const TechniqueRow& each) { return gigabytes(each.row.moved.to_host + each.row.moved.from_host); }},
      {"drives (GB/GPU)",
       [](const TechniqueRow& each) { return gigabytes(each.row.moved.to_drives + each.row.moved.from_drives); }},
      {"life (years)", [](const TechniqueRow& each) { return life_cell(each.row.result); }},
      {"binds", [](const TechniqueRow& each) { return std::string(to_string(each.row.result.binding)); }},
      {"planning (s)", [](const TechniqueRow& each) { return fmt::format("{:.1f}", each.row.planning_seconds); }}};
  return all;
}

// By the names that options take where programs read it.
Table technique_table(const TechniqueComparison& comparison, bool for_programs, bool whole) {
  const auto cell = [](const Column& column, const TechniqueRow& each) {
    return each.row.ran() ? column.cell(each) : "-";
  };
  std::vector<const Column*> columns;
  for (const Column& column : whole ? all_columns() : shown_columns())
    if (whole || std::any_of(comparison.rows.begin(), comparison.rows.end(),
                             [&](const TechniqueRow& each) { return cell(column, each) != "-"; }))
      columns.push_back(&column);
  std::vector<std::string> headings = {"technique", "fits"};
  for (const Column* column : columns) headings.emplace_back(column->name);
  Table table(headings);
  for (const TechniqueRow& each : comparison.rows) {
    const std::string& name = each.row.candidate.name;
    std::vector<std::string> cells = {for_programs ? name : words_of_ways(name), row_verdict(each.row)};
    for (const Column* column : columns) cells.push_back(cell(*column, each));
    table.add(std::move(cells));
  }
  return table;
}

std::string picture(const TechniqueComparison& comparison, const std::string& title) {
  std::vector<reports::BarRow> rows;
  reports::BarColumn time{.title = "step time", .unit = "ms"}, held{.title = "peak reserved", .unit = "GiB"},
      moved{.title = "moved per step", .unit = "GB, one GPU, both ways"};
  for (const TechniqueRow& each : comparison.rows) {
    const Row& row = each.row;
    const bool ran = row.ran(), known = ran && row.result.memory.known;
    rows.push_back({words_of_ways(row.candidate.name), row_verdict(row), !row.works()});
    time.values.push_back(ran ? std::optional(to_seconds(row.result.step_time) * 1e3) : std::nullopt);
    held.values.push_back(
        known ? std::optional(static_cast<double>(row.result.memory.peak_reserved.count()) / (1 << 30)) : std::nullopt);
    moved.values.push_back(ran ? std::optional(static_cast<double>(row.moved.all().count()) / 1e9) : std::nullopt);
    if (known && row.result.memory.capacity > Bytes(0)) {
      held.limit = static_cast<double>(row.result.memory.capacity.count()) / (1 << 30);
      held.limit_name = "the GPU's";
    }
  }
  return reports::bars_svg(title, rows, {time, held, moved});
}

bool is_of_plain(const TechniqueComparison& comparison, const std::string& warning) {
  const std::vector<std::string>& plain = comparison.rows.front().row.result.warnings;
  return std::find(plain.begin(), plain.end(), warning) != plain.end();
}

void run_techniques(Context& context, const TechniquesCall& call) {
  const bool wants_page = call.output.ends_with(".html");
  if (!call.output.empty() && !wants_page && !call.output.ends_with(".svg"))
    throw InputError(call.output, "--output", "neither .svg nor .html",
                     "name a picture (techniques.svg) or a page (techniques.html)");
  BaseScenario scenario = base_scenario(call.scenario);
  for (const std::string& setting : call.settings) scenario.text = with_setting(scenario.text, setting);
  const std::vector<Candidate> candidates = technique_candidates(scenario, call.techniques);
  const Progress progress(context);
  StoreInUse store(context, call.store);
  const TechniqueComparison comparison = compare_techniques(
      scenario, candidates,
      {.detail = Detail::figures,
       .store = store.get(),
       .progress = [&](const Row& row, std::size_t done, std::size_t all) {
         return progress.show(fmt::format("{} of {}: {}", done, all, words_of_ways(row.candidate.name))) &&
                !is_interrupted();
       }});
  if (comparison.rows.empty()) throw Cancelled();
  const bool none_ran = std::none_of(comparison.rows.begin(), comparison.rows.end(),
                                     [](const TechniqueRow& each) { return each.row.ran(); });
  if (comparison.is_whole && none_ran)
    throw InputError(call.scenario, "", comparison.rows.front().row.error, "see that `spillway run` takes it");
  const std::string taken_out = studies::taken_out(scenario);
  const std::string title = scenario_of(scenario, candidates.front().edits).title;
  if (wants_page && !comparison.rows.front().row.ran())
    note(context, "the plain step can't be run: " + call.output + " is not written");
  std::optional<studies::Answer> answer;
  if ((wants_page || context.json()) && comparison.rows.front().row.ran()) {
    std::vector<std::string> words = {"techniques", call.scenario};
    for (const std::string& name : call.techniques) words.insert(words.end(), {"--technique", name});
    answer = techniques_answer(scenario, comparison, told_command(std::move(words), call.settings), wants_page);
    if (wants_page) write_answer(*answer, call.output);
    answer->stages.clear();
    answer->lanes = {};
  }
  if (!call.output.empty() && !wants_page) {
    OutputFile output(call.output);
    output.write(picture(comparison, title));
    output.commit();
  }
  if (context.json()) {
    print_rows_json(comparison, call.scenario, answer, taken_out);
  } else {
    print(context, technique_table(comparison, context.rows_only(), context.rows_only() || is_verbose()));
    if (!taken_out.empty()) note(context, taken_out);
    if (const Result& plain = comparison.rows.front().row.result;
        comparison.rows.front().row.ran() && plain.verdict() == Verdict::unknown)
      warn_of_verdict(context, plain);
    for (const TechniqueRow& each : comparison.rows) {
      const std::string name = words_of_ways(each.row.candidate.name);
      if (!each.row.error.empty()) warn(context, name + ": " + each.row.error);
      for (const std::string& warning : each.row.result.warnings)
        if ((context.rows_only() || !studies::is_of_modelled_times(warning)) &&
            (&each == &comparison.rows.front() || !is_of_plain(comparison, warning)))
          warn(context, name + ": " + studies::warning_words(warning));
    }
  }
  if (comparison.is_whole) return;
  std::fflush(stdout);
  note(context, fmt::format("stopped: {} of {} techniques were compared", comparison.rows.size(), candidates.size()));
  throw Cancelled();
}

}  // namespace

void add_techniques_command(Command& app, Context& context) {
  Command* command = app.add_subcommand("techniques", "Every technique by itself and composed, side by side");
  const auto call = std::make_shared<TechniquesCall>();
  command->add_option("SCENARIO", call->scenario, "scenario file, or a trace to replay as captured")->required();
  command
      ->add_option("--technique", call->techniques,
                   "this technique, or several joined with +; may be repeated (default: all that apply)")
      ->type_name("NAME[+NAME...]")
      ->allow_extra_args(false);
  add_setting_options(*command, call->settings);
  command
      ->add_option("--output", call->output,
                   "write a picture of the rows (.svg), or the answer as one interactive page (.html)")
      ->to_write()
      ->type_name("FILE");
  add_store_option(*command, call->store);
  command->callback([&context, call] { run_stoppable([&] { run_techniques(context, *call); }); });
}

}  // namespace spillway::cli
