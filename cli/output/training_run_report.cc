#include "cli/output/training_run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/number_text.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string long_time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  if (seconds < 7'200) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 172'800) return fmt::format("{:.3g} h", seconds / 3'600);
  if (seconds < 2 * 365 * 86'400.0) return fmt::format("{:.3g} days", seconds / 86'400);
  return fmt::format("{:.3g} years", seconds / (365 * 86'400.0));
}

std::string energy_text(double joules) {
  const double kwh = joules / 3.6e6;
  return kwh < 1'000 ? fmt::format("{:.3g} kWh", kwh) : fmt::format("{} MWh", number_text(kwh / 1'000));
}

std::string share_text(double share) { return fmt::format("{:.3g} %", share * 100); }

std::string wear_text(const studies::DriveWear& wear, const studies::TrainingRun& run) {
  std::string text =
      fmt::format("{}: {:.4g} TB written to {} drives", wear.name, wear.written_bytes / 1e12, wear.drives);
  if (!wear.rated_share) return text + "; not rated, so how far that wears them is unknown";
  text += fmt::format(", {} of their rating ({} expected)", share_text(*wear.rated_share),
                      share_text(*wear.expected_share));
  if (wear.wears_out())
    text += fmt::format("; worn out by step {} of {}", grouped_text(*wear.rated_steps), grouped_text(run.steps));
  return text;
}

}  // namespace

std::string training_run_text(const studies::TrainingRun& run, const Result& result) {
  std::string text =
      fmt::format("\n  training run   {} steps in {}", grouped_text(run.steps), long_time_text(run.seconds));
  if (result.step_time_range.known)
    text += fmt::format(" ({} to {} in 80 % of runs like it)", long_time_text(run.seconds * result.step_time_range.low),
                        long_time_text(run.seconds * result.step_time_range.high));
  if (run.tokens) text += fmt::format(", {} tokens", number_text(*run.tokens));
  text += "\n";
  if (run.first_step_seconds > 0)
    text += fmt::format("    first step   {} longer: the allocator asks the driver for its segments\n",
                        long_time_text(run.first_step_seconds));
  if (run.evaluations > 0)
    text += fmt::format("    evaluations  {}, {} in all\n", grouped_text(run.evaluations),
                        long_time_text(run.evaluation_seconds));
  if (run.joules)
    text += fmt::format("    energy       {} of {} GPU{}\n", energy_text(*run.joules), grouped_text(run.gpus),
                        run.gpus == 1 ? "" : "s");
  for (const studies::DriveWear& wear : run.drives) text += "    drives       " + wear_text(wear, run) + "\n";
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
                      {"rated_share", maybe(wear.rated_share)},
                      {"expected_share", maybe(wear.expected_share)},
                      {"rated_steps", maybe(wear.rated_steps)},
                      {"wears_out", wear.wears_out()}});
  return {{"steps", run.steps},
          {"seconds", run.seconds},
          {"first_step_extra_seconds", run.first_step_seconds},
          {"evaluations", run.evaluations},
          {"evaluation_seconds", run.evaluation_seconds},
          {"tokens", maybe(run.tokens)},
          {"joules", maybe(run.joules)},
          {"gpus", run.gpus},
          {"drives", drives},
          {"drives_last", !run.wears_out()}};
}

}  // namespace spillway::cli
