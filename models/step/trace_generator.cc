#include "models/step/trace_generator.h"

#include <memory>

#include "models/spec/expert_load.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/evaluation_pass.h"
#include "models/step/generatable.h"
#include "models/step/interlude.h"
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
  return step;
}

std::optional<FoldedTrace> generate_folded_trace(const ModelSpec& model, const TrainingSetup& wanted,
                                                 const CostModel& cost, const Cluster& cluster, std::int64_t shown,
                                                 std::int64_t turns) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  require_generatable(model, setup);
  require_precision(setup, cost.gpu());
  return has_stages(setup) ? generate_folded_parallel_trace(model, setup, cost, cluster, shown, turns)
                           : generate_folded_single_step(model, setup, cost, shown, turns);
}

}  // namespace spillway::models
