#include "models/step/trace_generator.h"

#include "models/spec/expert_load.h"
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

Trace generate_trace(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost,
                     const Cluster& cluster) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  require_generatable(model, setup);
  require_precision(setup, cost.gpu());
  Trace step = generate_step(model, setup, cost, cluster);
  if (setup.expert_load != ExpertSpread::even) {
    TrainingSetup other = setup;
    for (std::int64_t before = setup.expert_load_steps; before > 0; --before) {
      other.expert_load_seed = step_seed(setup.expert_load_seed, before);
      add_interlude(step, generate_step(model, other, cost, cluster));
    }
  }
  if (setup.evaluate_every > 0)
    add_interlude(step, generate_evaluation(model, setup, cost, cluster, simulated_batches(setup)));
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
