#include "studies/candidates/objective.h"

#include <fmt/format.h>

#include <algorithm>

#include "planners/offload/drive_life.h"

namespace spillway::studies {

const Words& objective_words() {
  static const Words words = {{"step_time"},      {"peak_memory"},      {"gpus"},    {"gpu_time_per_token"},
                              {"cost_per_token"}, {"energy_per_token"}, {"ssd_life"}};
  return words;
}

std::string_view to_string(Objective objective) { return objective_words()[objective].name; }

double Figures::value(Objective objective) const {
  const double tokens = tokens_per_step > 0 ? tokens_per_step : 1;
  switch (objective) {
    case Objective::step_time:
      return step_seconds;
    case Objective::peak_memory:
      return peak_bytes;
    case Objective::gpus:
      return gpus;
    case Objective::gpu_time_per_token:
      return tokens_per_step > 0 ? gpus * step_seconds / tokens_per_step : step_seconds;
    case Objective::cost_per_token:
      return tokens_per_step > 0 ? rates.usd_per_hour * step_seconds / 3600 / tokens_per_step : step_seconds;
    case Objective::energy_per_token:
      return (rates.rest_watts * (step_seconds - busy_seconds) + rates.busy_watts * busy_seconds) / tokens;
    case Objective::ssd_life:
      return life_years > 0 ? 1 / life_years : 0;
  }
  return 0;
}

Figures figures_of(const Row& row) {
  const Result& result = row.result;
  const double seconds = to_seconds(result.step_time);
  return {.step_seconds = seconds,
          .peak_bytes = static_cast<double>(result.memory.peak_reserved.count()),
          .allocated_bytes = static_cast<double>(result.memory.peak_allocated.count()),
          .gpus = static_cast<double>(std::max<std::int64_t>(1, row.gpus)),
          .tokens_per_step = static_cast<double>(row.tokens_per_step),
          .busy_seconds = seconds * (1 - result.bubble.value_or(0)),
          .rates = row.rates,
          .life_years = shortest_life_years(result),
          .rated_years = shortest_rated_years(result)};
}

std::string missed(const Constraints& asked, const Row& row) {
  const Result& result = row.result;
  const double seconds = to_seconds(result.step_time), years = shortest_rated_years(result);
  if (asked.most_step_seconds > 0 && seconds > asked.most_step_seconds)
    return fmt::format("a step of {:.4g} s is longer than {:.4g} s", seconds, asked.most_step_seconds);
  if (asked.most_gpus > 0 && static_cast<double>(row.gpus) > asked.most_gpus)
    return fmt::format("{} GPUs are more than {:.4g}", row.gpus, asked.most_gpus);
  if (result.tokens_per_second < asked.least_tokens_per_second)
    return fmt::format("{:.4g} tokens/s are fewer than {:.4g}", result.tokens_per_second,
                       asked.least_tokens_per_second);
  if (result.mfu < asked.least_mfu) return fmt::format("an MFU of {:.3f} is below {:.3f}", result.mfu, asked.least_mfu);
  if (!(asked.least_life_years > 0)) return "";
  if (const DriveTraffic* const unrated = unrated_writes(result)) return told_unrated(*unrated);
  if (years < asked.least_life_years)
    return fmt::format("drives last {:.3g} years by their rating as it stands, not {:.3g}", years,
                       asked.least_life_years);
  return "";
}

}  // namespace spillway::studies
