#include "models/step/parallel_trace.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/generatable.h"
#include "models/step/plan_fold.h"
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
        copies_(setup.shard_groups),
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
      groups(assembly, stage, to_string(CommGroup::tensor), 1, tensor_);
      groups(assembly, stage, to_string(CommGroup::context), tensor_, context_);
      for (const CommGroup group : {CommGroup::shard, CommGroup::updated_weights})
        groups(assembly, stage, to_string(group), tensor_, peers_ / tensor_ / copies_);
      groups(assembly, stage, to_string(CommGroup::copies), peers_ / copies_, copies_);
      if (copies_ > 1) groups(assembly, stage, all_data_lane, tensor_, peers_ / tensor_);
      groups(assembly, stage, to_string(CommGroup::expert), expert_stride_, expert_);
      for (const CommGroup group : {CommGroup::expert_gradient, CommGroup::updated_experts})
        groups(assembly, stage, to_string(group), expert_stride_ * expert_,
               peers_ / expert_stride_ / expert_ / copies_);
    }
  }

 private:
  // Groups of `size` ranks `stride` apart.
  void groups(TraceAssembly& assembly, std::int64_t stage, std::string_view lane, std::int64_t stride,
              std::int64_t size) const {
    for (std::int64_t first = 0; first < peers_; ++first) {
      if (first / stride % size != 0) continue;
      std::vector<std::size_t> members;
      for (std::int64_t i = 0; i < size; ++i) members.push_back(rank(stage, first + i * stride));
      assembly.meet(members, lane);
    }
  }

  std::int64_t tensor_, context_, expert_, expert_stride_, copies_, peers_, stages_;
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

// What is known of a step before it is put together.
class StepPrograms {
 public:
  StepPrograms(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost, const Cluster& cluster)
      : model_(generatable(model)), setup_(resolve(wanted, model)), cost_(cost) {
    if (!cluster.timer && setup_.gpus() > 1)
      throw InputError("", "hardware", "several GPUs, but nothing tells how long their collectives take",
                       "name a system with networks");
    plan_ = plan_of(setup_);
    require_steps(plan_);
    if (model.has_encoder() && plan_.chunks_of_device() > 1)
      throw InputError("", "pipeline_schedule", "an encoder beside the decoder goes through one chunk per stage",
                       "use 1f1b, gpipe, eager-1f1b or a zb-h1, zb-h2, zb-1p, zb-2p");
    const ParallelLayout layout(setup_, model, cluster.gpus_per_machine, plan_, cluster.gpus_per_host);
    for (std::int64_t stage = 0; stage < layout.stages(); ++stage)
      programs_.push_back(record_stage(model, setup_, cost, layout, cluster.timer, stage, plan_));
    if (orders_by_measures(setup_)) {
      measures_ = measures_of(programs_, plan_, cost.gpu());
      plan_ = plan_of(setup_, measures_);
    }
  }

  [[nodiscard]] const TrainingSetup& setup() const { return setup_; }
  [[nodiscard]] const PipelinePlan& plan() const { return plan_; }
  [[nodiscard]] const std::vector<StageProgram>& programs() const { return programs_; }
  // Of another number of micro-batches, as these stages order it.
  [[nodiscard]] PipelinePlan plan_of_batches(std::int64_t micro_batches) const {
    TrainingSetup other = setup_;
    other.gradient_accumulation = micro_batches;
    return plan_of(other, measures_);
  }

  // The trace of `scope`'s ranks.
  Trace assemble(TraceAssembly& assembly, RankScope scope) const {
    const RankGrid grid(setup_, scope);
    std::vector<const StageProgram*> ranks;
    for (const StageProgram& program : programs_)
      for (std::int64_t peer = 0; peer < grid.peers(); ++peer) ranks.push_back(&program);
    assembly.reserve(ranks);
    for (const StageProgram* program : ranks) assembly.add_rank(*program, "stage " + std::to_string(program->stage));
    connect_stages(plan_, grid, assembly);
    grid.meet(assembly);
    Trace trace = assembly.finish();
    trace.provenance.push_back(
        {.file = model_.name,
         .format = "generated",
         .producer = "spillway: " + model_.title + " on " + std::to_string(setup_.gpus()) + " x " + cost_.gpu().title,
         .world_size = setup_.gpus()});
    return trace;
  }

 private:
  static const ModelSpec& generatable(const ModelSpec& model) {
    require_generatable(model);
    return model;
  }

  const ModelSpec& model_;
  TrainingSetup setup_;
  const CostModel& cost_;
  PipelinePlan plan_;
  PipelineMeasures measures_;
  std::vector<StageProgram> programs_;
};

// All chunks recorded in full, with the same passes in both plans.
bool are_alike(const std::vector<StageProgram>& programs, const PipelinePlan& whole) {
  for (const StageProgram& program : programs) {
    const std::vector<ChunkPasses> passes = chunk_passes(whole, program.stage);
    if (program.most_recorded != StageProgram::usually_recorded) return false;
    for (std::size_t c = 0; c < passes.size(); ++c) {
      const StageProgram::Chunk& chunk = program.chunks[c];
      if (chunk.recorded != StageProgram::usually_recorded || chunk.passes.splits != passes[c].splits ||
          chunk.passes.recomputes != passes[c].recomputes || chunk.passes.slices != passes[c].slices)
        return false;
    }
  }
  return true;
}

// None where a rank's periods are not alike.
std::optional<StepFold::Rank> rank_fold(const PlanFold::Device& device, const std::vector<TraceAssembly::Mark>& marks) {
  const TraceAssembly::Mark& first = marks[device.first];
  const TraceAssembly::Mark& second = marks[device.first + device.length];
  const StepFold::Rank rank{.periods = device.periods,
                            .op = first.ops,
                            .ops = second.ops - first.ops,
                            .event = first.memory_events,
                            .events = second.memory_events - first.memory_events,
                            .address = first.address,
                            .bytes = second.address - first.address};
  for (std::uint32_t k = 0; k <= device.periods; ++k) {
    const TraceAssembly::Mark& mark = marks[device.first + k * device.length];
    if (mark.ops != rank.op + k * rank.ops || mark.memory_events != rank.event + k * rank.events ||
        mark.address != rank.address + k * rank.bytes)
      return std::nullopt;
  }
  return rank;
}

}  // namespace

Trace generate_parallel_trace(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                              const Cluster& cluster, RankScope scope) {
  const StepPrograms step(model, setup, cost, cluster);
  TraceAssembly assembly(step.plan());
  return step.assemble(assembly, scope);
}

PipelinePlan generated_schedule(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                                const Cluster& cluster) {
  return StepPrograms(model, setup, cost, cluster).plan();
}

Trace generate_stage_trace(const ModelSpec& model, const TrainingSetup& wanted, const CostModel& cost,
                           const Cluster& cluster, std::int64_t stage) {
  require_generatable(model);
  const TrainingSetup setup = resolve(wanted, model);
  SPILLWAY_ASSERT(!orders_by_measures(setup));
  const PipelinePlan plan = plan_of(setup);
  require_steps(plan);
  const ParallelLayout layout(setup, model, cluster.gpus_per_machine, plan, cluster.gpus_per_host);
  const StageProgram program = record_stage(model, setup, cost, layout, cluster.timer, stage, plan);
  TraceAssembly assembly(plan);
  assembly.reserve({&program});
  assembly.add_rank(program, "stage " + std::to_string(stage));
  return assembly.finish();
}

bool has_stages(const TrainingSetup& setup) {
  return setup.traits().core || setup.traits().buckets_hold_all || setup.gpus() > 1 ||
         setup.weight_device != StateDevice::gpu || setup.zero_stage == 3;
}

std::optional<FoldedTrace> generate_folded_parallel_trace(const ModelSpec& model, const TrainingSetup& whole,
                                                          const CostModel& cost, const Cluster& cluster,
                                                          std::int64_t shown, std::int64_t turns) {
  if (whole.has_expert_loads() || whole.pipeline_plan || whole.evaluate_every > 0) return std::nullopt;
  for (const std::int64_t period : std::array<std::int64_t, 2>{1, whole.pipeline_parallel}) {
    TrainingSetup part = whole;
    part.global_batch = 0;
    const std::int64_t left = (whole.gradient_accumulation - shown) / (period * turns) * (period * turns);
    if (left <= 0) continue;
    part.gradient_accumulation = whole.gradient_accumulation - left;
    if (!orders_by_measures(whole)) {  // tell at once
      const PipelinePlan many = plan_of(whole);
      try {
        if (!fold_of(many, plan_of(part), period, micro_batches_apart)) continue;
      } catch (const InputError&) {
        continue;  // a schedule in groups of micro-batches, of which the part has a broken one
      }
    }
    const StepPrograms step(model, part, cost, cluster);
    const PipelinePlan plan = step.plan_of_batches(whole.gradient_accumulation);
    const std::optional<PlanFold> found = fold_of(plan, step.plan(), period, micro_batches_apart);
    if (!found || !are_alike(step.programs(), plan)) continue;
    TraceAssembly assembly(step.plan());
    assembly.count_energy_of(plan);
    FoldedTrace folded{step.assemble(assembly, RankScope::representative),
                       {.times = found->times},
                       part.gradient_accumulation,
                       period};
    bool is_regular = true;
    for (std::size_t stage = 0; stage < found->devices.size() && is_regular; ++stage) {
      const std::optional<StepFold::Rank> rank = rank_fold(found->devices[stage], assembly.marks(stage));
      is_regular = rank.has_value();
      if (rank) folded.fold.ranks.push_back(*rank);
    }
    if (is_regular) return folded;
  }
  return std::nullopt;
}

}  // namespace spillway::models
