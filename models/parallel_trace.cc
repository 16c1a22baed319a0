#include "models/parallel_trace.h"

#include <string>
#include <vector>

#include "models/generatable.h"
#include "models/stage_program.h"
#include "models/trace_assembly.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

// Every rank, or the first of each stage; numbers are data-context-tensor coordinates in one, then the stage.
class RankGrid {
 public:
  RankGrid(const TrainingSetup& setup, RankScope scope)
      : tensor_(setup.tensor_parallel),
        context_(setup.context_parallel),
        expert_(setup.expert_parallel),
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
      groups(assembly, stage, CommGroup::expert, tensor_, expert_);
      groups(assembly, stage, CommGroup::expert_gradient, tensor_ * expert_, peers_ / tensor_ / expert_);
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

  std::int64_t tensor_, context_, expert_, peers_, stages_;
};

void connect_stages(const TrainingSetup& setup, const RankGrid& grid, TraceAssembly& assembly) {
  const std::int64_t stages = setup.pipeline_parallel, parts = stages * setup.pipeline_chunks;
  for (std::int64_t part = 0; part + 1 < parts; ++part) {
    const std::int64_t here = part % stages, there = (part + 1) % stages;
    for (std::int64_t peer = 0; peer < grid.peers(); ++peer) {
      const std::size_t one = grid.rank(here, peer), other = grid.rank(there, peer);
      assembly.connect(one, other, part / stages, (part + 1) / stages, false);
      assembly.connect(other, one, (part + 1) / stages, part / stages, true);
    }
  }
}

}  // namespace

Trace generate_parallel_trace(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost,
                              const Cluster& cluster, RankScope scope) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  if (!cluster.timer && setup.gpus() > 1)
    throw InputError("", "hardware", "several GPUs, but nothing tells how long their collectives take",
                     "name a system with networks");
  const ParallelLayout layout(setup, model, cluster.gpus_per_machine);
  const RankGrid grid(setup, scope);
  std::vector<StageProgram> programs;
  for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
    programs.push_back(record_stage(model, setup, cost, layout, cluster.timer, stage));

  TraceAssembly assembly;
  std::vector<const StageProgram*> ranks;
  for (const StageProgram& program : programs)
    for (std::int64_t peer = 0; peer < grid.peers(); ++peer) ranks.push_back(&program);
  assembly.reserve(ranks);
  for (const StageProgram* program : ranks)
    assembly.add_rank(*program, pipeline_order(setup, program->stage), "stage " + std::to_string(program->stage));
  connect_stages(setup, grid, assembly);
  grid.meet(assembly);
  Trace trace = assembly.finish();
  trace.provenance.push_back(
      {.file = model.name,
       .format = "generated",
       .producer = "spillway: " + model.title + " on " + std::to_string(setup.gpus()) + " x " + cost.gpu().title,
       .world_size = setup.gpus()});
  return trace;
}

}  // namespace spillway
