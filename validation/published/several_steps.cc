#include "validation/published/several_steps.h"

#include <fmt/format.h>

#include "base/input_error.h"
#include "scenario/brief_run.h"
#include "sim/replay/verdict_words.h"
#include "studies/capacity/edge_search.h"

namespace spillway::validation {
namespace {

constexpr std::int64_t most_layers = 4096;

BriefRun run_of(const Scenario& scenario, const ModelNamed& model, SharedMachines& machines) {
  return run_briefly(scenario, model(scenario.model), *machines.of(scenario), Detail::times);
}

double most_layers_of(const Scenario& scenario, const ModelNamed& model, SharedMachines& machines) {
  const ModelSpec spec = with_layers(scenario, model(scenario.model));
  const std::int64_t step = resolve(scenario.training, spec).pipeline_parallel;
  const auto trains = [&](std::int64_t index) -> studies::EdgeTrial {
    Scenario tried = scenario;
    tried.layers = (index + 1) * step;
    return {.is_lower = run_of(tried, model, machines).run.result.verdict() == Verdict::fits, .measure = {}};
  };
  const std::int64_t first = std::max<std::int64_t>(spec.layers / step - 1, 0);
  const studies::VerdictEdge edge = studies::find_edge(first, most_layers / step, trains);
  if (!edge.lower)
    throw InputError("", "/model/layers", fmt::format("not even {} layers fit", step), "give a larger machine");
  if (!edge.upper)
    throw InputError("", "/model/layers", fmt::format("more than {} layers fit", most_layers),
                     "give a smaller machine");
  return static_cast<double>((*edge.lower + 1) * step);
}

double tokens_per_second(const Scenario& scenario, const ModelNamed& model, SharedMachines& machines) {
  const BriefRun ran = run_of(scenario, model, machines);
  if (!is_yes(ran.run.result.verdict())) throw InputError("", "", lacking(ran.run.result), "compare steps that fit");
  return ran.run.result.tokens_per_second;
}

}  // namespace

double predict_of_several(const Case& one, const ModelNamed& model, SharedMachines& machines) {
  SPILLWAY_ASSERT(is_of_several(one.metric));
  const auto figure = one.metric == Metric::throughput_ratio ? tokens_per_second : most_layers_of;
  const double own = figure(one.scenario, model, machines);
  return one.against ? own / figure(*one.against, model, machines) : own;
}

}  // namespace spillway::validation
