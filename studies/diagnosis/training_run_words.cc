#include "studies/diagnosis/training_run_words.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number_text.h"
#include "planners/offload/drive_life.h"

namespace spillway::studies {
namespace {

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

std::string share_text(double share) { return number_text(share * 100) + " %"; }

std::string wear_text(const DriveWear& wear, const TrainingRun& run) {
  std::string text = fmt::format("{}: {} TB written to {} drive{}", wear.name, number_text(wear.written_bytes / 1e12),
                                 wear.drives, wear.drives == 1 ? "" : "s");
  if (!wear.share) return text + "; not rated, so their wear is unknown";
  if (std::isinf(*wear.share)) return text + "; nothing is left of their rated life";
  if (run.bound == planners::LifeBound::expected)
    text += fmt::format(", {} of the life expected of them", share_text(*wear.expected_share));
  else
    text += fmt::format(", {} of their remaining lifetime {} ({} of the expected)", share_text(*wear.share),
                        told(run.bound), share_text(*wear.expected_share));
  if (wear.wears_out())
    text += fmt::format("; worn out by step {} of {}", grouped_text(*wear.steps), grouped_text(run.steps));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> training_run_rows(const TrainingRun& run, const Result& result) {
  std::string takes = fmt::format("{} steps in {}", grouped_text(run.steps), long_time_text(run.seconds));
  if (result.step_time_range.known)
    takes +=
        fmt::format(" ({} to {} in 80 % of steps like it)", long_time_text(run.seconds * result.step_time_range.low),
                    long_time_text(run.seconds * result.step_time_range.high));
  if (run.tokens) takes += fmt::format(", {} tokens", number_text(*run.tokens));
  std::vector<std::pair<std::string, std::string>> rows{{"training run", std::move(takes)}};
  if (run.first_step_seconds > 0)
    rows.emplace_back("first step", fmt::format("{} longer: the allocator asks the driver for its segments",
                                                long_time_text(run.first_step_seconds)));
  if (run.evaluations > 0)
    rows.emplace_back("evaluations", fmt::format("{}, {} in all", grouped_text(run.evaluations),
                                                 long_time_text(run.evaluation_seconds)));
  if (run.joules)
    rows.emplace_back("energy", fmt::format("{} of {} GPU{}", energy_text(*run.joules), grouped_text(run.gpus),
                                            run.gpus == 1 ? "" : "s"));
  for (const DriveWear& wear : run.drives) rows.emplace_back("drives", wear_text(wear, run));
  return rows;
}

}  // namespace spillway::studies
