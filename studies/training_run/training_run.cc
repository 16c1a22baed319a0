#include "studies/training_run/training_run.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "planners/offload/drive_life.h"
#include "sim/devices/endurance.h"

namespace spillway::studies {
namespace {

constexpr double seconds_a_year = 365.0 * 86'400;

DriveWear wear_of(const DriveTraffic& traffic, const Result& result, std::int64_t steps) {
  DriveWear wear{.name = traffic.name, .model = traffic.model, .drives = traffic.drives};
  const double step = to_seconds(result.step_time);
  wear.written_bytes = planners::write_rate(traffic, result) * step * static_cast<double>(steps);
  if (!traffic.life) return wear;
  const auto steps_in = [step](double years) { return years * seconds_a_year / step; };
  const auto share_of = [&](double years) { return static_cast<double>(steps) / steps_in(years); };
  wear.rated_share = share_of(traffic.life->low_years);
  wear.expected_share = share_of(traffic.life->years);
  const double last = std::floor(steps_in(traffic.life->low_years));
  if (last < 9e18) wear.rated_steps = static_cast<std::int64_t>(last);
  return wear;
}

}  // namespace

bool TrainingRun::wears_out() const {
  return std::any_of(drives.begin(), drives.end(), [](const DriveWear& wear) { return wear.wears_out(); });
}

TrainingRun training_run(const LoadedScenario& loaded, const Result& result, std::int64_t steps) {
  const auto count = static_cast<double>(steps);
  TrainingRun run{.steps = steps, .first_step_seconds = to_seconds(result.memory.first_driver_time)};
  run.gpus = loaded.scenario.model.empty() ? 1 : loaded.setup.gpus();
  if (result.evaluation && result.evaluation->every_steps > 0) {
    run.evaluations = steps / result.evaluation->every_steps;
    run.evaluation_seconds = static_cast<double>(run.evaluations) * to_seconds(result.evaluation->time);
  }
  run.seconds = count * to_seconds(result.step_time) + run.first_step_seconds + run.evaluation_seconds;
  if (loaded.options.tokens_per_step > 0) run.tokens = count * static_cast<double>(loaded.options.tokens_per_step);
  if (result.power) run.joules = count * result.power->joules * static_cast<double>(run.gpus);
  for (const DriveTraffic& traffic : result.drives)
    if (traffic.written > Bytes(0)) run.drives.push_back(wear_of(traffic, result, steps));
  return run;
}

std::int64_t steps_for_tokens(const LoadedScenario& loaded, double tokens, const std::string& option) {
  if (loaded.options.tokens_per_step <= 0)
    throw InputError(loaded.scenario.title, option, "nobody knows how many tokens a step of this capture trains",
                     "say how many steps instead: --steps N");
  const double steps = std::ceil(tokens / static_cast<double>(loaded.options.tokens_per_step));
  if (!(steps >= 1 && steps <= 1e15))
    throw InputError("", option, "not a number of tokens that whole steps could train", "give 1 to 1e18 tokens");
  return static_cast<std::int64_t>(steps);
}

}  // namespace spillway::studies
