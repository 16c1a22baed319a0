#include "scenario/drawn_run.h"

#include <algorithm>
#include <string>
#include <utility>

namespace spillway::scenario {
namespace {

// Layers times micro-batches. Llama 3.1 405B has some 125 operators for each (docs/internals/performance.md).
constexpr std::int64_t most_layer_runs = 8192;

// Micro-batches are numbered from 0.
std::int64_t shown_micro_batches(const Trace& trace) {
  std::int64_t shown = 0;
  for (const std::uint16_t batch : trace.ops.micro_batch)
    if (batch != no_index16) shown = std::max<std::int64_t>(shown, batch + 1);
  return shown;
}

}  // namespace

bool is_drawn_in_part(const Scenario& scenario) {
  if (!may_fold(scenario)) return false;
  const ModelSpec model = with_layers(scenario, find_model(scenario.model));
  return model.layers * resolve(scenario.training, model).gradient_accumulation > most_layer_runs;
}

BriefRun run_to_draw(const Scenario& scenario) {
  if (is_drawn_in_part(scenario)) return run_briefly(scenario);
  LoadedScenario loaded = load(scenario);
  ScenarioRun run = run_traced(loaded);
  return {std::move(loaded), std::move(run)};
}

std::int64_t micro_batches_left_out(const LoadedScenario& loaded) {
  if (loaded.options.memory.fold == nullptr) return 0;
  return loaded.setup.gradient_accumulation - shown_micro_batches(loaded.trace);
}

std::string drawn_words(const LoadedScenario& loaded) {
  const std::int64_t all = loaded.setup.gradient_accumulation, left_out = micro_batches_left_out(loaded);
  if (left_out == 0) return "";
  return std::to_string(all - left_out) + " of " + std::to_string(all) + " micro-batches";
}

Picos end_of_drawn(const Result& result) {
  if (result.op_runs.empty()) return result.replayed;
  Picos end{};
  for (const Picos one : result.op_end) end = std::max(end, one);  // unknown_time is less than any
  return end;
}

}  // namespace spillway::scenario
