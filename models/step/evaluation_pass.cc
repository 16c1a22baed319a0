#include "models/step/evaluation_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "models/spec/expert_load.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/stage_program.h"
#include "models/step/trace_assembly.h"

namespace spillway::models {
namespace {

constexpr std::int64_t even_groups = 4;  // of as many batches as stages: one fills the pipeline, the others are alike

// The places of the training's first route; each device in the order of (group of p, position, micro-batch), which no
// pass's predecessor contradicts.
PipelinePlan forwards_of(const PipelinePlan& training, std::int64_t batches) {
  PipelinePlan plan = training;
  plan.name = "evaluation";
  plan.micro_batches = batches;
  plan.slices = 1;
  plan.route_of.clear();
  plan.compute.assign(static_cast<std::size_t>(plan.devices), {});
  plan.copies.assign(static_cast<std::size_t>(plan.devices), {});
  for (std::int64_t first = 0; first < batches; first += plan.devices)
    for (const PipelinePlan::Place& place : plan.routes.front())
      for (std::int64_t j = first; j < std::min(batches, first + plan.devices); ++j)
        plan.compute[static_cast<std::size_t>(place.device)].push_back(
            {.pass = {.micro_batch = static_cast<std::int32_t>(j), .chunk = static_cast<std::int16_t>(place.chunk)}});
  return plan;
}

}  // namespace

TrainingSetup evaluation_setup(const TrainingSetup& training, std::int64_t batches) {
  TrainingSetup setup = training;
  if (training.evaluation_micro_batch > 0) setup.micro_batch = training.evaluation_micro_batch;
  setup.gradient_accumulation = batches;
  setup.global_batch = 0;
  setup.dropout = 0;
  setup.recompute = Recompute::none;
  setup.recomputed_chunks = 0;
  setup.loss_metrics = 0;
  setup.sequence_slices = 1;
  setup.cuda_graphs.clear();
  setup.expert_load_seed = step_seed(training.expert_load_seed, -1);
  setup.evaluate_every = 0;
  return setup;
}

std::int64_t simulated_batches(const TrainingSetup& training) {
  if (training.evaluation_keeps == EvaluationKeeps::logits) return training.evaluation_batches;
  return std::min(training.evaluation_batches, even_groups * training.pipeline_parallel);
}

Trace generate_evaluation(const ModelSpec& model, const TrainingSetup& training, const CostModel& cost,
                          const Cluster& cluster, std::int64_t batches) {
  const TrainingSetup setup = evaluation_setup(training, batches);
  ModelSpec evaluated = model;
  evaluated.attention_dropout = 0;
  const PipelinePlan plan = forwards_of(plan_of(training), batches);
  const ParallelLayout layout(setup, evaluated, cluster.gpus_per_machine, plan, cluster.gpus_per_host);
  std::vector<StageProgram> programs;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    programs.push_back(record_evaluation(evaluated, setup, cost, layout, cluster.timer, stage, plan));
  TraceAssembly assembly(plan);
  std::vector<const StageProgram*> ranks;
  for (const StageProgram& program : programs) ranks.push_back(&program);
  assembly.reserve(ranks);
  for (const StageProgram* program : ranks) assembly.add_rank(*program, "stage " + std::to_string(program->stage));
  const auto& route = plan.routes.front();
  for (std::size_t i = 0; i + 1 < route.size(); ++i)
    if (route[i].device != route[i + 1].device)
      assembly.connect(static_cast<std::size_t>(route[i].device), static_cast<std::size_t>(route[i + 1].device),
                       route[i].chunk, route[i + 1].chunk, false);
  return assembly.finish();
}

}  // namespace spillway::models
