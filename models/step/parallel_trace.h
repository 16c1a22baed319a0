// The trace of one step of a model spread over GPUs.
//
// Ranks of a tensor, context, data or expert group do the same at the same time. By default one of them stands for all
// (`representative`): one rank per pipeline stage, with the collectives as ops of that rank, timed for their group. The
// trace's rank is then the stage. `all` gives every rank, numbered as ParallelLayout numbers them, and lets the members
// of each collective wait for each other. Both replay to the same step time (tests/sim/parallel_replay_test.cc).
//
// Deviations: the representative of each group is the first. So a stage boundary inside a machine or between machines
// is taken from the first rank's place. A NCCL kernel takes no multiprocessors away from the kernels beside it.
#pragma once

#include <cstdint>
#include <optional>

#include "models/cost/cost_model.h"
#include "models/pipeline/pipeline_plan.h"
#include "models/session/communication.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "traces/step_fold.h"
#include "traces/trace.h"

namespace spillway::models {

enum class RankScope : std::uint8_t { representative, all };

struct Cluster {
  std::int64_t gpus_per_machine = 8;  // that the scale-up network joins, of one host or several
  CollectiveTimer timer;              // needed when the set-up has more than one GPU
  std::int64_t gpus_per_host = 0;     // 0: as many; else a divisor
};

// Throws InputError as resolve() does, and without a timer. O(ops); the model's layers themselves are worked out once
// per stage.
Trace generate_parallel_trace(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                              const Cluster& cluster, RankScope scope = RankScope::representative);

// The order of passes of that step, as its schedule has it for these stages. Throws and costs as above, without the
// trace.
PipelinePlan generated_schedule(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                                const Cluster& cluster);

// One stage's part of the same step: what its representative does in the plan's order, as rank and device 0. Its memory
// events and start-up are those of the whole trace's device `stage`; nothing waits for another stage. Throws as above.
// O(ops of the stage). `setup`: its schedule orders by nothing measured (orders_by_measures()).
Trace generate_stage_trace(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                           const Cluster& cluster, std::int64_t stage);

// Whether a step of this (resolved) set-up is made of stage programs, on one GPU too: its framework's buffers and loop,
// or weights that are gathered, are the stage's.
bool has_stages(const TrainingSetup& setup);

// The same step, showing some of its micro-batches.
struct FoldedTrace {
  Trace trace;
  StepFold fold;
  std::int64_t shown = 0, period = 0;  // micro-batches: in the trace, and of a period
};
// generate_folded_trace() (trace_generator.h) of a resolved set-up with stages. Throws as above.
std::optional<FoldedTrace> generate_folded_parallel_trace(const ModelSpec& model, const TrainingSetup& setup,
                                                          const CostModel& cost, const Cluster& cluster,
                                                          std::int64_t shown, std::int64_t turns);

}  // namespace spillway::models
