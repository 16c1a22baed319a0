#include "cli/output/training_run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "studies/diagnosis/training_run_words.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string training_run_text(const studies::TrainingRun& run, const Result& result) {
  std::string text;
  for (const auto& [name, words] : training_run_rows(run, result))
    text += text.empty() ? fmt::format("\n  {:<14} {}\n", name, words) : fmt::format("    {:<12} {}\n", name, words);
  return text;
}

Json training_run_json(const studies::TrainingRun& run) {
  const auto maybe = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json drives = Json::array();
  for (const studies::DriveWear& wear : run.drives)
    drives.push_back({{"name", wear.name},
                      {"model", wear.model},
                      {"drives_per_machine", wear.drives},
                      {"bytes_written", wear.written_bytes},
                      {"life_share", maybe(wear.share)},
                      {"expected_share", maybe(wear.expected_share)},
                      {"steps_they_take", maybe(wear.steps)},
                      {"wears_out", wear.wears_out()}});
  return {{"steps", run.steps},
          {"seconds", run.seconds},
          {"first_step_extra_seconds", run.first_step_seconds},
          {"evaluations", run.evaluations},
          {"evaluation_seconds", run.evaluation_seconds},
          {"tokens", maybe(run.tokens)},
          {"joules", maybe(run.joules)},
          {"gpus", run.gpus},
          {"life_bound", planners::life_bound_words()[run.bound].name},
          {"drives", drives},
          {"drives_last", run.is_life_known() || run.wears_out() ? Json(!run.wears_out()) : Json()}};
}

}  // namespace spillway::cli
