#include "models/step/trace_generator.h"

#include <optional>

#include "models/network/transformer.h"
#include "models/session/autograd.h"
#include "models/session/eager_session.h"
#include "models/spec/expert_load.h"
#include "models/step/evaluation_pass.h"
#include "models/step/generatable.h"
#include "models/step/gradient_reducer.h"
#include "models/step/host_optimizer.h"
#include "models/step/host_times.h"
#include "models/step/interlude.h"
#include "models/step/optimizer_step.h"
#include "models/step/step_clock.h"

namespace spillway::models {
namespace {

void copy_to_device(EagerSession& session, const Tensor& tensor) {
  session.kernel({.name = "Memcpy HtoD",
                  .writes = {tensor},
                  .cost = {.kind = KernelClass::copy_to_device, .type = tensor.type()},
                  .kind = OpKind::copy_host_to_device});
}

void run_micro_batch(EagerSession& session, Autograd& autograd, Transformer& transformer, GradientReducer* reducer,
                     bool is_last) {
  session.set_phase(Phase::forward);
  const Tensor ids = transformer.empty_input();
  copy_to_device(session, ids);
  const Tensor labels = transformer.empty_labels();
  copy_to_device(session, labels);
  const Tensor loss = transformer.forward(ids, labels);
  session.set_phase(Phase::backward);
  Tensor seed = session.empty("loss.grad", DataType::fp32, 1, TensorRole::temporary);
  session.kernel({.name = "fill_one", .writes = {seed}});
  if (reducer != nullptr) reducer->begin_backward(is_last);
  autograd.backward(loss, std::move(seed));
  if (reducer != nullptr) reducer->end_backward();
  transformer.run_metrics();
  session.set_layer(-1);
}

}  // namespace

static Trace generate_step(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                           const Cluster& cluster) {
  if (has_stages(setup)) return generate_parallel_trace(model, setup, cost, cluster);
  EagerSession session(cost, cost.gpu().title);
  set_host_times(session, setup);
  session.set_graph_pool(setup.graph_pool && !setup.captures("full_iteration"));
  Autograd autograd(session);
  Transformer transformer(model, setup, {.layers = {0, model.all_layers()}}, session, autograd, nullptr);
  std::vector<TrainedParameter*> parameters;
  for (TrainedParameter& parameter : transformer.parameters())
    if (parameter.trains) parameters.push_back(&parameter);
  std::optional<OptimizerStep> optimizer;
  std::optional<HostOptimizer> host_optimizer;
  std::optional<GradientReducer> reducer;
  if (setup.optimizer_device == StateDevice::gpu) {
    optimizer.emplace(setup, session, parameters, nullptr);
  } else {
    host_optimizer.emplace(setup, session, parameters, nullptr, 1);
    reducer.emplace(setup, session, autograd, nullptr);
    reducer->set_host(*host_optimizer);
  }
  session.begin_step("step 0");
  if (setup.has_expert_loads()) transformer.set_expert_load(ExpertLoad(model, setup));
  for (std::int64_t index = 0; index < setup.gradient_accumulation; ++index) {
    session.set_micro_batch(index);
    transformer.set_expert_pass(index);
    run_micro_batch(session, autograd, transformer, reducer ? &*reducer : nullptr,
                    index + 1 == setup.gradient_accumulation);
  }
  session.set_micro_batch(-1);
  session.set_phase(Phase::optimizer);
  if (host_optimizer)
    host_optimizer->run();
  else
    optimizer->run();
  Trace trace = session.finish();
  settle_clock(trace, session.take_drawing(), cost);
  trace.provenance.push_back(
      {.file = model.name, .format = "generated", .producer = "spillway: " + model.title + " on " + cost.gpu().title});
  return trace;
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

}  // namespace spillway::models
