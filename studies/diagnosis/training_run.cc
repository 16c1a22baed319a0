#include "studies/diagnosis/training_run.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"
#include "sim/devices/endurance.h"

namespace spillway::studies {
namespace {

DriveWear wear_of(const DriveTraffic& traffic, const Result& result, const TrainingRun& run) {
  DriveWear wear{.name = traffic.name, .model = traffic.model, .drives = traffic.drives};
  const double rate = planners::write_rate(traffic, result), of_step = rate * to_seconds(result.step_time);
  const auto steps = static_cast<double>(run.steps);
  wear.written_bytes = of_step * steps;
  if (!traffic.life) return wear;
  const double years = years_to_write(of_step, rate);  // of a step
  const double life = planners::years_by(*traffic.life, run.bound);
  wear.share = steps * years / life;
  wear.expected_share = steps * years / traffic.life->years;
  if (const double last = std::floor(life / years); last < 9e18) wear.steps = static_cast<std::int64_t>(last);
  return wear;
}

}  // namespace

bool TrainingRun::is_life_known() const {
  return std::all_of(drives.begin(), drives.end(), [](const DriveWear& wear) { return wear.share.has_value(); });
}

bool TrainingRun::wears_out() const {
  return std::any_of(drives.begin(), drives.end(), [](const DriveWear& wear) { return wear.wears_out(); });
}

TrainingRun training_run(const LoadedScenario& loaded, const Result& result, std::int64_t steps) {
  const auto count = static_cast<double>(steps);
  TrainingRun run{.steps = steps, .first_step_seconds = to_seconds(result.memory.first_driver_time)};
  run.bound = loaded.scenario.offload.demands.bound;
  run.gpus = loaded.scenario.model.empty() ? 1 : loaded.setup.gpus();
  if (result.evaluation && result.evaluation->every_steps > 0) {
    run.evaluations = steps / result.evaluation->every_steps;
    run.evaluation_seconds = static_cast<double>(run.evaluations) * to_seconds(result.evaluation->time);
  }
  run.seconds = count * to_seconds(result.step_time) + run.first_step_seconds + run.evaluation_seconds;
  if (loaded.options.tokens_per_step > 0) run.tokens = count * static_cast<double>(loaded.options.tokens_per_step);
  if (result.power) run.joules = count * result.power->joules * static_cast<double>(run.gpus);
  for (const DriveTraffic& traffic : result.drives)
    if (traffic.written > Bytes(0)) run.drives.push_back(wear_of(traffic, result, run));
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
