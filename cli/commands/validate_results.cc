#include "cli/commands/validate_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/number_text.h"
#include "base/output_file.h"
#include "cli/output/table.h"
#include "validation/campaign/campaign_results.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using validation::CampaignComparison;
using validation::CampaignErrors;
using validation::CampaignResults;
using validation::CampaignStep;
using validation::StepStatus;

std::optional<double> error_of(const CampaignComparison& row, const std::optional<double>& predicted) {
  if (!row.measured || !predicted) return std::nullopt;
  return *predicted / *row.measured - 1;
}

// In the unit of people: ms and GiB.
std::string figure_text(const CampaignComparison& row, const std::optional<double>& value) {
  if (!value) return "-";
  if (row.unit == "ns") return fmt::format("{:.3f} ms", *value * 1e-6);
  if (row.unit == "B") return fmt::format("{:.3f} GiB", *value / (1 << 30));
  return fmt::format("{:.6g} {}", *value, row.unit);
}

std::string error_text(const std::optional<double>& error) { return error ? signed_percent_text(*error, 2) : "-"; }

std::string_view word_of(StepStatus status) {
  return validation::step_status_words()[static_cast<std::size_t>(status)].name;
}

Table comparison_table(const CampaignResults& results) {
  Table table({"case", "metric", "measured", "blind", "error", "profile", "from a trace", "error of it"});
  for (const CampaignComparison& row : results.comparisons)
    table.add({row.case_name, row.metric, figure_text(row, row.measured), figure_text(row, row.blind),
               error_text(error_of(row, row.blind)), row.blind_profile.empty() ? "-" : row.blind_profile,
               figure_text(row, row.from_trace), error_text(error_of(row, row.from_trace))});
  return table;
}

Table error_table(const std::vector<CampaignErrors>& all) {
  Table table({"metric", "predicted", "runs", "median", "|median|", "|90th|", "|worst|"});
  for (const CampaignErrors& one : all)
    table.add({one.metric, one.column == "blind" ? "blind" : "from a trace", std::to_string(one.errors.n),
               signed_percent_text(one.errors.median, 2), percent_text(one.errors.median_abs, 2),
               percent_text(one.errors.p90_abs, 2), percent_text(one.errors.worst_abs, 2)});
  return table;
}

Table allocator_table(const CampaignResults& results) {
  Table table({"PyTorch's allocator", "served again", "differences"});
  for (const validation::AllocatorVerdict& one : results.allocator)
    table.add({one.check, one.is_confirmed ? "the same" : "DIFFER",
               one.differences.empty() ? "-"
               : one.differences.size() == 1
                   ? one.differences.front()
                   : fmt::format("{}, and {} more", one.differences.front(), one.differences.size() - 1)});
  return table;
}

Table machine_table(const CampaignResults& results) {
  Table table({"machine", "is"});
  table.add({"spillway", results.program.empty() ? "did not run there" : results.program});
  for (const auto& [name, value] : results.machine) table.add({name, value});
  return table;
}

Table step_table(const CampaignResults& results) {
  Table table({"step", "phase", "status", "seconds", "why"});
  for (const CampaignStep& step : results.steps)
    table.add({step.name, step.phase, std::string(word_of(step.status)) + (step.from_earlier ? " (earlier)" : ""),
               fmt::format("{:.1f}", step.seconds), step.reason.empty() ? "-" : step.reason});
  return table;
}

std::string counts_text(const CampaignResults& results) {
  std::string text;
  for (std::size_t i = 0; i < validation::step_status_words().size(); ++i) {
    const auto count = std::count_if(results.steps.begin(), results.steps.end(), [i](const CampaignStep& step) {
      return static_cast<std::size_t>(step.status) == i;
    });
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word_of(static_cast<StepStatus>(i)));
  }
  return text.empty() ? "none" : text;
}

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json results_json(const CampaignResults& results) {
  Json document = json_document("spillway-validation");
  document["spillway"] = results.program;
  document["finished"] = results.is_finished;
  document["machine"] = Json::object();
  for (const auto& [name, value] : results.machine) document["machine"][name] = value;
  for (const char* key : {"summary", "rows", "skipped", "steps", "allocator", "packs", "left_out", "warnings"})
    document[key] = Json::array();
  for (const CampaignErrors& one : validation::campaign_errors(results))
    document["summary"].push_back({{"source", one.column},
                                   {"metric", one.metric},
                                   {"role", "validation"},
                                   {"n", one.errors.n},
                                   {"median_abs_error", one.errors.median_abs},
                                   {"p90_abs_error", one.errors.p90_abs},
                                   {"worst_abs_error", one.errors.worst_abs},
                                   {"median_error", one.errors.median}});
  for (const CampaignComparison& row : results.comparisons)
    for (const auto& [source, predicted] : {std::pair("blind", &row.blind), std::pair("from_trace", &row.from_trace)})
      document["rows"].push_back({{"case", row.case_name},
                                  {"source", source},
                                  {"metric", row.metric},
                                  {"unit", row.unit},
                                  {"measured", json_of(row.measured)},
                                  {"predicted", json_of(*predicted)},
                                  {"relative_error", json_of(error_of(row, *predicted))},
                                  {"role", "validation"}});
  for (const CampaignStep& step : results.steps) {
    document["steps"].push_back({{"name", step.name},
                                 {"phase", step.phase},
                                 {"status", word_of(step.status)},
                                 {"seconds", step.seconds},
                                 {"reason", step.reason},
                                 {"earlier", step.from_earlier}});
    if (step.status == StepStatus::skipped)
      document["skipped"].push_back({{"case", step.name}, {"reason", step.reason}});
  }
  for (const validation::AllocatorVerdict& one : results.allocator)
    document["allocator"].push_back(
        {{"check", one.check}, {"confirmed", one.is_confirmed}, {"differences", one.differences}});
  for (const validation::CampaignPack& pack : results.packs)
    document["packs"].push_back({{"name", pack.name}, {"bytes", pack.bytes.count()}});
  for (const auto& [name, bytes] : results.left_out)
    document["left_out"].push_back({{"name", name}, {"bytes", bytes.count()}});
  const validation::TrainerCaveats caveats = validation::trainer_caveats(results);
  document["trainer"] = {{"least_measured_share", caveats.least_measured},
                         {"most_measured_share", caveats.most_measured},
                         {"transfer_verdicts", caveats.verdicts},
                         {"transfer_verdicts_right", caveats.right}};
  return document;
}

std::string caveats_text(const validation::TrainerCaveats& caveats) {
  std::string text;
  if (caveats.most_measured > 0)
    text += fmt::format(
        "trainer: {:.0f} to {:.0f} % of a blind time are measured times of its own kernels, no prediction\n",
        100 * caveats.least_measured, 100 * caveats.most_measured);
  if (caveats.verdicts > 0)
    text += fmt::format("trainer: transfers hidden or exposed as predicted in {} of the {} runs that move data\n",
                        caveats.right, caveats.verdicts);
  return text;
}

}  // namespace

void validate_results(const std::string& folder, Context& context) {
  const CampaignResults results = validation::read_campaign(folder);
  if (context.json()) {
    print_json(results_json(results));
  } else if (context.rows_only()) {
    print(context, comparison_table(results));
  } else {
    print(machine_table(results).text() + "\n" + step_table(results).text() + "\nsteps: " + counts_text(results) +
          "\n");
    if (!results.comparisons.empty()) print("\n" + comparison_table(results).text());
    if (const auto errors = validation::campaign_errors(results); !errors.empty())
      print("\n" + error_table(errors).text() + caveats_text(validation::trainer_caveats(results)));
    if (!results.allocator.empty()) print("\n" + allocator_table(results).text());
  }
  if (!results.is_finished) warn(context, folder + ": its last call was ended before all steps had their turn");
  for (const auto& [name, bytes] : results.left_out)
    warn(context, fmt::format("{} ({}) found no room in the packs", name, for_people(bytes)));
  const bool all_confirmed = std::all_of(results.allocator.begin(), results.allocator.end(),
                                         [](const validation::AllocatorVerdict& one) { return one.is_confirmed; });
  if (!all_confirmed || std::any_of(results.steps.begin(), results.steps.end(),
                                    [](const CampaignStep& step) { return step.status == StepStatus::failed; }))
    context.exit_code = exit_answer_is_no;
}

}  // namespace spillway::cli
