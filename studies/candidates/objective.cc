#include "studies/candidates/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/short_text.h"
#include "planners/offload/drive_life.h"
#include "studies/candidates/request_parts.h"

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
          .free_bytes = result.memory.known && result.memory.limit > Bytes(0)
                            ? static_cast<double>((result.memory.limit - result.memory.peak_reserved).count())
                            : 0,
          .busy_seconds = seconds * (1 - result.bubble.value_or(0)),
          .mfu = result.mfu,
          .rates = row.rates,
          .life_years = shortest_life_years(result),
          .rated_years = shortest_rated_years(result)};
}

namespace {

// A bound on a figure of a row, and its words: "a step of 12 s is longer than 10 s".
struct Bound {
  std::string_view key, about;
  double Constraints::*limit;
  double (*figure)(const Figures&);  // 0: not known
  bool is_least = false;
  const char *words, *breaks;
  Dimension dimension = Dimension::plain;
};

double per_million(const Figures& figures, Objective objective, bool is_known) {
  return is_known && figures.tokens_per_step > 0 ? figures.value(objective) * 1e6 : 0;
}

constexpr std::array bounds = {
    Bound{"step_time_seconds", "At most.", &Constraints::most_step_seconds,
          [](const Figures& of) { return of.step_seconds; }, false, "a step of {:.4g} s", "is longer than {:.4g} s"},
    Bound{"gpus", "At most.", &Constraints::most_gpus, [](const Figures& of) { return of.gpus; }, false, "{:.4g} GPUs",
          "are more than {:.4g}"},
    Bound{"tokens_per_second", "At least.", &Constraints::least_tokens_per_second,
          [](const Figures& of) { return of.step_seconds > 0 ? of.tokens_per_step / of.step_seconds : 0; }, true,
          "{:.4g} tokens/s", "are fewer than {:.4g}"},
    Bound{"mfu", "At least.", &Constraints::least_mfu, [](const Figures& of) { return of.mfu; }, true,
          "an MFU of {:.3f}", "is below {:.3f}"},
    Bound{"peak_reserved_bytes", "At most, on the GPU that needs most.", &Constraints::most_peak_bytes,
          [](const Figures& of) { return of.peak_bytes; }, false, "a peak of {}", "is above {}", Dimension::bytes},
    Bound{"free_bytes", "At least, beside what is kept free: as the verdict says.", &Constraints::least_free_bytes,
          [](const Figures& of) { return of.free_bytes; }, true, "{} free", "are less than {}", Dimension::bytes},
    Bound{"usd_per_million_tokens", "At most.", &Constraints::most_usd_per_million_tokens,
          [](const Figures& of) { return per_million(of, Objective::cost_per_token, of.rates.usd_per_hour > 0); },
          false, "{:.4g} USD per million tokens", "are more than {:.4g}"},
    Bound{
        "kwh_per_million_tokens", "At most.", &Constraints::most_kwh_per_million_tokens,
        [](const Figures& of) { return per_million(of, Objective::energy_per_token, of.rates.busy_watts > 0) / 3.6e6; },
        false, "{:.4g} kWh per million tokens", "are more than {:.4g}"},
    Bound{"gpu_hours_per_million_tokens", "At most.", &Constraints::most_gpu_hours_per_million_tokens,
          [](const Figures& of) { return per_million(of, Objective::gpu_time_per_token, true) / 3600; }, false,
          "{:.4g} GPU hours per million tokens", "are more than {:.4g}"},
    Bound{"life_years", "Of the drives, at least, by their rating as it stands.", &Constraints::least_life_years,
          [](const Figures& of) { return of.rated_years; }, true,
          "drives last {:.3g} years by their rating as it stands,", "not {:.3g}"}};

// Negative: kept.
double share_missed(const Bound& bound, double figure, double limit) {
  return bound.is_least ? 1 - figure / limit : figure / limit - 1;
}

std::string size_words(double bytes) {
  const std::string size = short_size(Bytes(static_cast<std::int64_t>(std::abs(bytes))));
  return bytes < 0 ? "-" + size : size;
}

std::string words_of(const Bound& bound, double figure, double limit) {
  if (bound.dimension == Dimension::bytes)
    return fmt::format(fmt::runtime(bound.words), size_words(figure)) + " " +
           fmt::format(fmt::runtime(bound.breaks), size_words(limit));
  return fmt::format(fmt::runtime(bound.words), figure) + " " + fmt::format(fmt::runtime(bound.breaks), limit);
}

}  // namespace

void describe_bounds(Constraints& constraints, FieldVisitor& visitor) {
  for (const Bound& bound : bounds)
    describe_limit(constraints.*bound.limit,
                   {.key = bound.key, .dimension = bound.dimension, .about = bound.about, .above_min = true}, visitor);
}

std::vector<Miss> misses(const Constraints& asked, const Row& row) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  const Figures figures = figures_of(row);
  std::vector<Miss> all;
  for (const Bound& bound : bounds) {
    const double limit = asked.*bound.limit, figure = bound.figure(figures);
    if (limit <= 0) continue;
    if (const DriveTraffic* const unrated =
            bound.limit == &Constraints::least_life_years ? unrated_writes(row.result) : nullptr)
      all.push_back({told_unrated(*unrated), unknown});
    else if (figure == 0)
      all.push_back({std::string(bound.key) + " is not known", unknown});
    else if (const double share = share_missed(bound, figure, limit); share > 0)
      all.push_back({words_of(bound, figure, limit), share});
  }
  return all;
}

std::string missed(const Constraints& asked, const Row& row) {
  const std::vector<Miss> all = misses(asked, row);
  return all.empty() ? "" : all.front().words;
}

double excess(const Constraints& asked, const Figures& figures) {
  double most = 0;
  for (const Bound& bound : bounds)
    if (const double limit = asked.*bound.limit, figure = bound.figure(figures); limit > 0 && figure != 0)
      most = std::max(most, share_missed(bound, figure, limit));
  return most;
}

bool asks_usd(const Constraints& asked) { return asked.most_usd_per_million_tokens > 0; }
bool asks_energy(const Constraints& asked) { return asked.most_kwh_per_million_tokens > 0; }

}  // namespace spillway::studies
