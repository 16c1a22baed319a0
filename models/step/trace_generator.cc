#include "models/step/trace_generator.h"

#include <memory>

#include "base/input_error.h"
#include "models/spec/expert_load.h"
#include "models/spec/models_beside.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/evaluation_pass.h"
#include "models/step/generatable.h"
#include "models/step/interlude.h"
#include "models/step/reference_pass.h"
#include "models/step/single_step.h"

namespace spillway::models {
static Trace generate_step(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                           const Cluster& cluster) {
  return has_stages(setup) ? generate_parallel_trace(model, setup, cost, cluster)
                           : generate_single_step(model, setup, cost);
}

// Their passes come in the order of the step that is shown, however long they take.
static void add_steps_before(Trace& step, const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                             const Cluster& cluster) {
  TrainingSetup other = setup;
  if (orders_by_measures(setup)) {
    other.recomputed_chunks = 0;  // the plan's business
    other.pipeline_plan = std::make_shared<PipelinePlan>(generated_schedule(model, setup, cost, cluster));
  }
  for (std::int64_t before = setup.expert_load_steps; before > 0; --before) {
    other.expert_load_seed = step_seed(setup.expert_load_seed, before);
    add_step_before(step, generate_step(model, other, cost, cluster));
  }
}

// The memory events that are now before the step's own.
static std::size_t hold_models_beside(Trace& step, const ModelSpec& model, const TrainingSetup& setup,
                                      const CostModel& cost, const Cluster& cluster) {
  const std::int64_t batches = setup.pipeline_parallel;  // as few as every schedule takes
  std::size_t events = 0;
  const auto hold = [&](const char* key, const auto& generate) {
    try {
      events += hold_beside(step, generate());
    } catch (const InputError& error) {
      throw InputError("", key, error.place().empty() ? error.cause() : error.place() + ": " + error.cause(),
                       error.remedy());
    }
  };
  if (const auto value = value_model(model, setup))
    hold("value_model", [&] { return generate_trace(*value, value_setup(setup, batches), cost, cluster); });
  if (const auto reward = reward_model(model, setup))
    hold("reward_model", [&] {
      const TrainingSetup own = resolve(reward_setup(setup, batches), *reward);
      require_generatable(*reward, own);
      return generate_evaluation(*reward, reference_setup(*reward, own), cost, cluster, batches);
    });
  return events;
}

Trace generate_trace(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost,
                     const Cluster& cluster) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  require_generatable(model, setup);
  require_precision(setup, cost.gpu());
  Trace step = generate_step(model, setup, cost, cluster);
  if (setup.expert_load != ExpertSpread::even) add_steps_before(step, model, setup, cost, cluster);
  if (setup.evaluate_every > 0)
    add_evaluation(step, generate_evaluation(model, setup, cost, cluster, simulated_batches(setup)));
  hold_models_beside(step, model, setup, cost, cluster);
  return step;
}

std::optional<FoldedTrace> generate_folded_trace(const ModelSpec& model, const TrainingSetup& wanted,
                                                 const CostModel& cost, const Cluster& cluster, std::int64_t shown,
                                                 std::int64_t turns) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  require_generatable(model, setup);
  require_precision(setup, cost.gpu());
  std::optional<FoldedTrace> step = has_stages(setup)
                                        ? generate_folded_parallel_trace(model, setup, cost, cluster, shown, turns)
                                        : generate_folded_single_step(model, setup, cost, shown, turns);
  if (!step || !setup.has_models_beside()) return step;
  const std::size_t events = hold_models_beside(step->trace, model, setup, cost, cluster);
  for (StepFold::Rank& rank : step->fold.ranks) rank.event += static_cast<std::uint32_t>(events);
  return step;
}

}  // namespace spillway::models
