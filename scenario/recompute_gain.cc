#include "scenario/recompute_gain.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number_text.h"
#include "scenario/brief_run.h"

namespace spillway::scenario {

std::string saves_nothing(const std::string& does, const MemoryResult& memory, Bytes plain_peak) {
  constexpr double least_saving = 0.005;  // of the peak
  if (!memory.known || plain_peak == Bytes(0)) return "";
  const double saving = 1 - in_gib(memory.peak_allocated) / in_gib(plain_peak);
  if (saving >= least_saving) return "";
  return fmt::format("{} and saves nothing: the peak is {} allocated, and {} without it", does,
                     gib_text(memory.peak_allocated), gib_text(plain_peak));
}

std::string recomputes_for_nothing(Recompute recompute, const Result& result, const Result& plain) {
  if (!plain.memory.known || plain.memory.out_of_memory || result.memory.out_of_memory) return "";
  const double longer = to_seconds(result.step_time) / to_seconds(plain.step_time) - 1;
  return saves_nothing(fmt::format("{} recomputation makes the step {:.1f} % {}", to_string(recompute),
                                   std::abs(longer) * 100, longer < 0 ? "shorter" : "longer"),
                       result.memory, plain.memory.peak_allocated);
}

std::string recomputes_for_nothing(const Scenario& scenario, const Result& result) {
  const Recompute recompute = scenario.training.recompute;
  const bool chooses = recompute == Recompute::selective || recompute == Recompute::operators;
  if (scenario.model.empty() || !chooses || !scenario.plan.empty() || scenario.offload.moves() ||
      result.step_time <= Picos(0))
    return "";
  Scenario plain = scenario;
  plain.training.recompute = Recompute::none;
  return recomputes_for_nothing(recompute, result, run_briefly(plain, Detail::times).run.result);
}

}  // namespace spillway::scenario
