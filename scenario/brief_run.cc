#include "scenario/brief_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "models/step/trace_generator.h"
#include "planners/technique/technique_table.h"

namespace spillway::scenario {
namespace {

// Of a pipeline of p stages: its warm-up and its end take p micro-batches each, and periods come to be alike in some
// more; on one stage they soon are. Copies that are under way take some more.
std::int64_t first_shown(const TrainingSetup& setup, bool moves) {
  const std::int64_t p = setup.pipeline_parallel;
  return 2 * p + (p > 1 ? 16 : 8) + (moves ? 10 : 0);
}

// What is refused was planned for nothing.
std::int64_t least_times(bool moves) { return moves ? 3 : 2; }

bool has_turns(const TrainingSetup& setup, bool moves) {
  return least_times(moves) * first_shown(setup, moves) <= setup.gradient_accumulation;
}

// Few micro-batches, and every layer of them, are soon replayed.
constexpr std::int64_t few_layer_runs = 800, least_times_fewer = 4;

BriefRun run_loaded(LoadedScenario& loaded, Detail detail) {
  loaded.options.memory.detail = detail;
  ScenarioRun run = run_traced(loaded);
  return {std::move(loaded), std::move(run)};
}

// False where the step is to be told whole.
bool use_folded(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine,
                const std::function<std::optional<FoldRefusal>(LoadedScenario&)>& use) {
  if (!may_fold(scenario)) return false;
  const ModelSpec layered = with_layers(scenario, model);
  const TrainingSetup setup = resolve(scenario.training, layered);
  const bool moves = scenario.offload.moves();
  std::int64_t turns = 1;
  for (std::int64_t shown = first_shown(setup, moves); least_times(moves) * shown <= setup.gradient_accumulation;) {
    std::optional<FoldedTrace> step =
        generate_folded_trace(layered, setup, machine.cost, machine.cluster, shown, turns);
    if (!step) return false;
    const std::int64_t times = step->fold.times;
    LoadedScenario loaded = load(scenario, model, machine, std::move(step->trace));
    loaded.options.memory.fold = std::make_shared<const StepFold>(std::move(step->fold));
    const std::optional<FoldRefusal> refusal = use(loaded);
    if (!refusal) return true;
    if (is_verbose())
      log_choice("fold", std::to_string(step->shown) + " micro-batches don't tell the other " +
                             std::to_string(times * step->period) + ": " + refusal->why +
                             (refusal->turns == 0 ? "" : "; periods take turns of " + std::to_string(refusal->turns)));
    const bool are_news = refusal->turns != 0 && times % refusal->turns != 0;
    shown = are_news ? step->shown + std::max<std::int64_t>(refusal->more, 1) * step->period : 2 * shown;
    if (are_news) turns = refusal->turns;
  }
  return false;
}

}  // namespace

// A plan is of the whole step, an order or places of each op; drives' caches fill by the clock.
bool may_fold(const Scenario& scenario) {
  const Technique* const places = technique_said(allocator_key, scenario.allocator);
  const Technique* const fates = technique_said(offload_key, scenario.offload.technique);
  const bool fates_repeat = fates != nullptr && fates->repeats && scenario.offload.tier == Tier::host;
  return scenario.fold && !scenario.record_streams && !scenario.model.empty() && scenario.plan.empty() &&
         scenario.memory_plan.empty() && (!scenario.offload.moves() || fates_repeat) &&
         scenario.order == program_order_word && !scenario.jitter.is_used() &&
         (places == nullptr || places->make == nullptr);
}

bool may_fold(const Scenario& scenario, const ModelSpec& model) {
  return may_fold(scenario) &&
         has_turns(resolve(scenario.training, with_layers(scenario, model)), scenario.offload.moves());
}

std::optional<Scenario> brief_step(const Scenario& scenario) {
  if (!may_fold(scenario) || scenario.offload.moves()) return std::nullopt;
  const ModelSpec model = with_layers(scenario, find_model(scenario.model));
  const TrainingSetup setup = resolve(scenario.training, model);
  const std::int64_t p = setup.pipeline_parallel, shown = p > 1 ? 3 * p : 2;
  const std::int64_t layer_runs = model.layers * setup.gradient_accumulation;
  if (setup.has_expert_loads() || setup.evaluate_every > 0 || setup.has_phases() || layer_runs <= few_layer_runs ||
      setup.gradient_accumulation < least_times_fewer * shown)
    return std::nullopt;
  Scenario brief = scenario;
  brief.training.data_parallel = setup.data_parallel;
  brief.training.global_batch = 0;
  brief.training.gradient_accumulation = shown;
  return brief;
}

void use_briefly(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine,
                 const std::function<std::optional<FoldRefusal>(LoadedScenario&)>& use) {
  if (use_folded(scenario, model, machine, use)) return;
  LoadedScenario loaded = load(scenario, model, machine);
  const std::optional<FoldRefusal> refusal = use(loaded);
  SPILLWAY_ASSERT(!refusal);
}

BriefRun run_briefly(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine, Detail detail) {
  std::optional<BriefRun> run;
  use_briefly(scenario, model, machine, [&](LoadedScenario& loaded) {
    BriefRun made = run_loaded(loaded, detail);
    const std::optional<FoldRefusal> refusal = made.run.result.refusal;
    if (!refusal) run.emplace(std::move(made));
    return refusal;
  });
  return std::move(*run);
}

BriefRun run_briefly(const Scenario& scenario, Detail detail, const ReadOptions& read) {
  if (scenario.model.empty()) {
    LoadedScenario loaded = load(scenario, read);
    return run_loaded(loaded, detail);
  }
  return run_briefly(scenario, find_model(scenario.model), ScenarioMachine(hardware_of(scenario)), detail);
}

}  // namespace spillway::scenario
