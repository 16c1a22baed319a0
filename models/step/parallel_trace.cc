#include "models/step/parallel_trace.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/generatable.h"
#include "models/step/stage_program.h"
#include "models/step/trace_assembly.h"

namespace spillway::models {
namespace {

// Every rank, or the first of each stage; numbers are data-context-tensor coordinates in one, then the stage.
class RankGrid {
 public:
  RankGrid(const TrainingSetup& setup, RankScope scope)
      : tensor_(setup.tensor_parallel),
        context_(setup.context_parallel),
        expert_(setup.expert_parallel),
        expert_stride_(setup.has_whole_experts() ? 1 : tensor_),
        peers_(scope == RankScope::all ? tensor_ * context_ * setup.data_parallel : 1),
        stages_(setup.pipeline_parallel) {}

  [[nodiscard]] std::int64_t peers() const { return peers_; }
  [[nodiscard]] std::size_t rank(std::int64_t stage, std::int64_t peer) const {
    return static_cast<std::size_t>(stage * peers_ + peer);
  }

  void meet(TraceAssembly& assembly) const {
    for (std::int64_t peer = 0; peer < peers_; ++peer) {
      std::vector<std::size_t> stages;
      for (std::int64_t stage = 0; stage < stages_; ++stage) stages.push_back(rank(stage, peer));
      assembly.meet(stages, stages_lane);
    }
    if (peers_ == 1) return;
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      groups(assembly, stage, CommGroup::tensor, 1, tensor_);
      groups(assembly, stage, CommGroup::context, tensor_, context_);
      groups(assembly, stage, CommGroup::gradient, tensor_, peers_ / tensor_);
      groups(assembly, stage, CommGroup::expert, expert_stride_, expert_);
      groups(assembly, stage, CommGroup::expert_gradient, expert_stride_ * expert_, peers_ / expert_stride_ / expert_);
    }
  }

 private:
  // Groups of `size` ranks `stride` apart.
  void groups(TraceAssembly& assembly, std::int64_t stage, CommGroup group, std::int64_t stride,
              std::int64_t size) const {
    for (std::int64_t first = 0; first < peers_; ++first) {
      if (first / stride % size != 0) continue;
      std::vector<std::size_t> members;
      for (std::int64_t i = 0; i < size; ++i) members.push_back(rank(stage, first + i * stride));
      assembly.meet(members, to_string(group));
    }
  }

  std::int64_t tensor_, context_, expert_, expert_stride_, peers_, stages_;
};

void connect_stages(const PipelinePlan& plan, const RankGrid& grid, TraceAssembly& assembly) {
  for (const auto& route : plan.routes) {
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      const PipelinePlan::Place &here = route[i], &there = route[i + 1];
      if (here.device == there.device) continue;
      for (std::int64_t peer = 0; peer < grid.peers(); ++peer) {
        const std::size_t one = grid.rank(here.device, peer), other = grid.rank(there.device, peer);
        assembly.connect(one, other, here.chunk, there.chunk, false);
        assembly.connect(other, one, there.chunk, here.chunk, true);
      }
    }
  }
}

// How long the recorded stages' passes take, and the longest transfer between two of them.
PipelineMeasures measures_of(const std::vector<StageProgram>& programs, const PipelinePlan& plan,
                             const GpuProfile& gpu) {
  PipelineMeasures measures;
  measures.weight_part = 0;
  for (const PipelinePlan::Place& place : plan.routes.front()) {
    const StageProgram& program = programs[static_cast<std::size_t>(place.device)];
    measures.times.positions.push_back(pass_times(program, place.chunk, gpu));
    measures.weight_part = std::max(measures.weight_part, weight_part(program, place.chunk));
    for (const OpId send : program.sections[program.section(place.chunk, 0, 0, StageProgram::Part::forward)].sends)
      measures.times.transfer = std::max(measures.times.transfer, program.trace.ops.duration[index_of(send)].count());
  }
  return measures;
}

}  // namespace

Trace generate_parallel_trace(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost,
                              const Cluster& cluster, RankScope scope) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  if (!cluster.timer && setup.gpus() > 1)
    throw InputError("", "hardware", "several GPUs, but nothing tells how long their collectives take",
                     "name a system with networks");
  PipelinePlan plan = plan_of(setup);
  require_steps(plan);
  if (model.has_encoder() && plan.chunks_of_device() > 1)
    throw InputError("", "pipeline_schedule", "an encoder beside the decoder goes through one chunk per stage",
                     "use 1f1b, gpipe, eager-1f1b or a zb-h1, zb-h2, zb-1p, zb-2p");
  const ParallelLayout layout(setup, model, cluster.gpus_per_machine, plan, cluster.gpus_per_host);
  const RankGrid grid(setup, scope);
  std::vector<StageProgram> programs;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    programs.push_back(record_stage(model, setup, cost, layout, cluster.timer, stage, plan));
  if (orders_by_measures(setup)) plan = plan_of(setup, measures_of(programs, plan, cost.gpu()));

  TraceAssembly assembly(plan);
  std::vector<const StageProgram*> ranks;
  for (const StageProgram& program : programs)
    for (std::int64_t peer = 0; peer < grid.peers(); ++peer) ranks.push_back(&program);
  assembly.reserve(ranks);
  for (const StageProgram* program : ranks) assembly.add_rank(*program, "stage " + std::to_string(program->stage));
  connect_stages(plan, grid, assembly);
  grid.meet(assembly);
  Trace trace = assembly.finish();
  trace.provenance.push_back(
      {.file = model.name,
       .format = "generated",
       .producer = "spillway: " + model.title + " on " + std::to_string(setup.gpus()) + " x " + cost.gpu().title,
       .world_size = setup.gpus()});
  return trace;
}

}  // namespace spillway::models
