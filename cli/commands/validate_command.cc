#include "cli/commands/validate_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/number_text.h"
#include "base/output_file.h"
#include "base/stop.h"
#include "cli/commands/validate_choices.h"
#include "cli/commands/validate_kernels.h"
#include "cli/commands/validate_results.h"
#include "cli/options/command_options.h"
#include "cli/options/interrupt.h"
#include "cli/options/number_check.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "reports/pictures/scatter_svg.h"
#include "validation/published/case_panels.h"
#include "validation/published/case_run.h"
#include "validation/published/case_sample.h"

namespace spillway::cli {
namespace {

struct ValidateArguments {
  std::string cases, folder, output, plot;
  std::vector<std::string> sources;
  std::optional<std::int64_t> sample;
  std::optional<double> tolerance;
  ValidateKernelsArguments kernels;
  ValidateChoicesArguments choices;
};

// Keeps the cases of the sources that have one of the words in their name, in any letter case.
void keep_sources(std::vector<CaseFile>& files, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  const auto lower = [](std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return text;
  };
  std::vector<std::string> known;
  for (const CaseFile& file : files)
    for (const Case& one : file.cases)
      if (std::find(known.begin(), known.end(), one.source) == known.end()) known.push_back(one.source);
  for (const std::string& word : wanted)
    if (std::none_of(known.begin(), known.end(),
                     [&](const std::string& name) { return lower(name).find(lower(word)) != std::string::npos; }))
      throw InputError("--source", word, "no case is from a source of this name", suggest(word, known));
  for (CaseFile& file : files)
    std::erase_if(file.cases, [&](const Case& one) {
      return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
        return lower(one.source).find(lower(word)) != std::string::npos;
      });
    });
}

std::vector<CaseFile> case_files(const ValidateArguments& arguments) {
  std::vector<CaseFile> files;
  if (arguments.cases == "published" || arguments.cases == "choices")
    for (const std::string& path : published_case_files()) files.push_back(load_cases(path));
  else
    files.push_back(load_cases(arguments.cases));
  keep_sources(files, arguments.sources);
  if (arguments.sample) keep_sample(files, static_cast<std::size_t>(*arguments.sample));
  return files;
}

std::string title_of(const std::vector<CaseFile>& files) {
  if (files.size() > 1) return "published cases";
  return files.front().title.empty() ? files.front().path : files.front().title;
}

// What a tolerance states, one after the other; "-": nothing.
std::string words_of(const Tolerance& tolerance) {
  std::vector<std::string> parts;
  if (tolerance.median) parts.push_back(fmt::format("median {:.6g} %", 100 * *tolerance.median));
  if (tolerance.p90) parts.push_back(fmt::format("90th {:.6g} %", 100 * *tolerance.p90));
  if (tolerance.kendall) parts.push_back(fmt::format("Kendall {:.6g}", *tolerance.kendall));
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string asked_words(const CaseSummary& summary) {
  if (summary.asked.states_nothing()) return "-";
  const Tolerance missed = summary.missed();
  return missed.states_nothing() ? "met" : "missed: " + words_of(missed);
}

Table summary_table(const std::vector<CaseSummary>& summaries) {
  Table table({"source", "metric", "role", "cases", "median", "|median|", "|90th|", "|worst|", "Kendall", "in range",
               "asked", "held to instead", "kept"});
  for (const CaseSummary& summary : summaries) {
    const ErrorStatistics& errors = summary.errors;
    table.add({summary.source, std::string(to_string(summary.metric)), summary.role, std::to_string(errors.n),
               signed_percent_text(errors.median), percent_text(errors.median_abs), percent_text(errors.p90_abs),
               percent_text(errors.worst_abs), errors.n < 2 ? "-" : fmt::format("{:.3f}", errors.kendall_tau),
               summary.with_range == 0 ? "-" : fmt::format("{} of {}", summary.in_range, summary.with_range),
               asked_words(summary), words_of(summary.held_to), summary.within() ? "yes" : "no"});
  }
  return table;
}

Table row_table(const std::vector<CaseOutcome>& outcomes) {
  std::vector<std::string> titles = {"case",           "source", "metric", "unit",       "measured", "predicted",
                                     "relative_error", "role",   "fits",   "confidence", "setup"};
  for (int i = 0; i < binding_count; ++i) titles.push_back("share_" + std::string(to_string(static_cast<Binding>(i))));
  titles.insert(titles.end(), {"range_kind", "range_low", "range_high"});
  Table table(titles);
  for (const CaseOutcome& outcome : outcomes) {
    if (!outcome.skipped.empty()) continue;
    const Case& one = *outcome.measured;
    std::vector<std::string> cells = {one.id,
                                      one.source,
                                      std::string(to_string(one.metric)),
                                      one.unit,
                                      fmt::format("{}", outcome.figure()),
                                      fmt::format("{:.6g}", outcome.predicted),
                                      fmt::format("{:.5f}", outcome.relative_error()),
                                      one.role,
                                      std::string(yes_or_no(outcome.verdict)),
                                      one.confidence,
                                      one.setup};
    for (const double share : outcome.shares) cells.push_back(fmt::format("{:.4f}", share));
    cells.push_back(outcome.range_kind);
    for (const double end : {outcome.range.low, outcome.range.high})
      cells.push_back(outcome.range.known ? fmt::format("{:.4f}", end) : "");
    table.add(cells);
  }
  return table;
}

// Skipped cases by source and reason.
Table skipped_table(const std::vector<CaseOutcome>& outcomes) {
  struct Line {
    std::string source, reason, example;
    std::size_t count = 0;
  };
  std::vector<Line> lines;
  for (const CaseOutcome& outcome : outcomes) {
    if (outcome.skipped.empty()) continue;
    auto line = std::find_if(lines.begin(), lines.end(), [&outcome](const Line& known) {
      return known.source == outcome.measured->source && known.reason == outcome.skipped;
    });
    if (line == lines.end())
      line = lines.insert(line, {outcome.measured->source, outcome.skipped, outcome.measured->id, 0});
    ++line->count;
  }
  Table table({"source", "cases", "first", "why it was skipped"});
  for (const Line& line : lines) table.add({line.source, std::to_string(line.count), line.example, line.reason});
  return table;
}

nlohmann::ordered_json tolerance_json(const Tolerance& tolerance) {
  const auto figure = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  return {{"median", figure(tolerance.median)}, {"p90", figure(tolerance.p90)}, {"kendall", figure(tolerance.kendall)}};
}

nlohmann::ordered_json summary_json(const CaseSummary& summary) {
  return {{"source", summary.source},
          {"metric", to_string(summary.metric)},
          {"role", summary.role},
          {"n", summary.errors.n},
          {"median_abs_error", summary.errors.median_abs},
          {"p90_abs_error", summary.errors.p90_abs},
          {"worst_abs_error", summary.errors.worst_abs},
          {"mean_abs_error", summary.errors.mean_abs},
          {"median_error", summary.errors.median},
          {"kendall_tau", summary.errors.kendall_tau},
          {"cases_with_range", summary.with_range},
          {"cases_in_range", summary.in_range},
          {"asked", tolerance_json(summary.asked)},
          {"missed", tolerance_json(summary.missed())},
          {"tolerance", tolerance_json(summary.asked.but_for(summary.held_to))},
          {"within_tolerance", summary.within()}};
}

nlohmann::ordered_json validation_json(const std::vector<CaseSummary>& summaries,
                                       const std::vector<CaseOutcome>& outcomes) {
  nlohmann::ordered_json document = json_document("spillway-validation");
  for (const char* key : {"summary", "rows", "skipped", "warnings"}) document[key] = nlohmann::ordered_json::array();
  for (const CaseSummary& summary : summaries) document["summary"].push_back(summary_json(summary));
  for (const CaseOutcome& outcome : outcomes) {
    const Case& one = *outcome.measured;
    if (!outcome.skipped.empty()) {
      document["skipped"].push_back({{"case", one.id}, {"source", one.source}, {"reason", outcome.skipped}});
      continue;
    }
    nlohmann::ordered_json row = {{"case", one.id},
                                  {"source", one.source},
                                  {"metric", to_string(one.metric)},
                                  {"unit", one.unit},
                                  {"measured", outcome.figure()},
                                  {"predicted", outcome.predicted},
                                  {"relative_error", outcome.relative_error()},
                                  {"role", one.role},
                                  {"fits", fits_json(outcome.verdict)},
                                  {"confidence", one.confidence}};
    if (one.measured_to > one.measured) row["published_range"] = {one.measured, one.measured_to};
    document["rows"].push_back(std::move(row));
  }
  return document;
}

void print_tables(const std::vector<CaseSummary>& summaries, const std::vector<CaseOutcome>& outcomes) {
  if (!summaries.empty()) print(summary_table(summaries).text());
  const Table skipped = skipped_table(outcomes);
  if (!skipped.empty()) print("\n" + skipped.text());
}

void validate(const ValidateArguments& arguments, Context& context) {
  const StopScope scope(&interrupt_flag());
  const std::vector<CaseFile> files = case_files(arguments);
  const std::vector<CaseOutcome> outcomes = run_cases(files, Progress(context).counter("validating, long steps first"));
  const Tolerance tolerance{.median = arguments.tolerance, .p90 = {}, .kendall = {}};
  const std::vector<CaseSummary> summaries = summarize(files, outcomes, arguments.tolerance ? &tolerance : nullptr);
  if (!arguments.output.empty()) write_text(arguments.output, row_table(outcomes).csv());
  if (!arguments.plot.empty())
    write_text(arguments.plot,
               scatter_svg("Predicted against measured: " + title_of(files), scatter_panels(outcomes, summaries)));
  if (context.json())
    print_json(validation_json(summaries, outcomes));
  else if (context.rows_only())
    print(context, row_table(outcomes));
  else
    print_tables(summaries, outcomes);
  if (std::any_of(summaries.begin(), summaries.end(), [](const CaseSummary& summary) { return !summary.within(); }))
    context.exit_code = exit_answer_is_no;
}

void results(const ValidateArguments& arguments, Context& context) {
  if (arguments.folder.empty())
    throw InputError("FOLDER", "", "is missing", "name the folder that validation/gpu_campaign.sh wrote to (--out)");
  validate_results(arguments.folder, context);
}

}  // namespace

void add_validate_commands(Command& app, Context& context) {
  auto arguments = std::make_shared<ValidateArguments>();
  Command* command = app.add_subcommand(
      "validate", "Predict published or own measurements; exit code 1 outside the tolerance they are held to");
  command
      ->add_option("CASES", arguments->cases,
                   "published, kernels, choices, results, or a file of cases (docs/schemas/cases.schema.json)")
      ->required();
  command->add_option("FOLDER", arguments->folder,
                      "results: what a GPU campaign brought back (docs/internals/gpu-campaign.md)");
  command->add_option("--source", arguments->sources, "only sources with this in their name; may be given again")
      ->type_name("NAME");
  command
      ->add_option("--sample", arguments->sample,
                   "at most N set-ups of each source, metric and role: always the same ones, of the shorter half")
      ->type_name("N")
      ->range(1, 100'000);
  command->add_option("--output", arguments->output, "write one line per case, as CSV")->to_write()->type_name("FILE");
  command->add_option("--plot", arguments->plot, "write a picture of predicted against measured")
      ->to_write()
      ->type_name("FILE.svg");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "largest median of |relative error| of each source, instead of what the file asks")
      ->type_name("X")
      ->check(non_negative_number());
  ValidateChoicesArguments& choices = arguments->choices;
  command->add_option("--gpus", choices.gpus, "choices: leave out set-ups of more GPUs (512)")->type_name("N");
  command->add_option("--replays", choices.replays, "choices: layouts replayed per set-up before more are tried (32)")
      ->type_name("N")
      ->range(1, 100'000);
  ValidateKernelsArguments& kernels = arguments->kernels;
  command->add_option("--backend", kernels.backend, "kernels: what runs them")->type_name("cpu|cuda");
  command
      ->add_option("--file", kernels.file,
                   "kernels: name of a file that does not exist, on the drive to offload to; by default in the "
                   "temporary folder")
      ->to_write()
      ->type_name("PATH");
  command->add_option("--technique", kernels.techniques, "kernels: only this technique; may be given again")
      ->type_name("NAME");
  command->add_option("--model", kernels.models, "kernels: only models with this in their name; may be given again")
      ->type_name("NAME");
  command->add_option("--steps", kernels.steps, "kernels: steps of each run")->type_name("N")->range(1, 1000);
  command
      ->add_option("--results", kernels.results,
                   "kernels: folder that keeps what came out, as DATE-BACKEND.csv, .json and .svg")
      ->type_name("FOLDER");
  command->add_option("--hardware", kernels.hardware, "kernels: profile of the machine that predictions are for")
      ->type_name("NAME");
  command->callback([arguments, &context] {
    if (arguments->cases == "results") return results(*arguments, context);
    if (!arguments->folder.empty())
      throw InputError("FOLDER", "", "'" + arguments->folder + "' is given, which results alone take",
                       "leave it out, or say: spillway validate results " + arguments->folder);
    if (arguments->cases == "choices") {
      arguments->choices.output = arguments->output;
      return validate_choices(arguments->choices, case_files(*arguments), context);
    }
    if (arguments->cases != "kernels") return validate(*arguments, context);
    arguments->kernels.output = arguments->output;
    arguments->kernels.plot = arguments->plot;
    validate_kernels(arguments->kernels, context);
  });
}

}  // namespace spillway::cli
