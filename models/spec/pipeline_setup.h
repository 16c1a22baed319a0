// The pipeline plan that a training set-up asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_plan.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// The schedule's name as named_schedules() has it: "one_f_one_b" is 1f1b, 1f1b over several chunks is interleaved.
std::string schedule_name(const TrainingSetup& setup);

// Throws InputError, naming the setting at fault, where there is no such schedule, it can't have these sizes, or it is
// no order of a generated step (require_steps). Fills in pipeline_chunks and sequence_slices where the schedule has its
// own number, or a file gives it. O(operations) for a file, else O(1).
void resolve_pipeline(TrainingSetup& setup);

// PipeOffload's schedules, which keep the activations of some chunks in host memory (planners/offload/pipeoffload.h),
// and BPipe, which keeps those of some micro-batches on another stage's GPU (planners/offload/bpipe.h).
bool moves_activations(std::string_view schedule);
// How many first chunks of each stage of a resolved set-up go to host memory; 0 for other schedules.
std::int64_t chunks_that_move(const TrainingSetup& setup);

// Figures that a schedule may order by; the defaults are equal stages.
struct PipelineMeasures {
  StageTimes times;
  std::int64_t weight_part = 1'000'000;
};
// The plan of a resolved set-up, without what moves activations. O(operations), see build_schedule().
PipelinePlan plan_of(const TrainingSetup& setup, const PipelineMeasures& measures = {});
// false: plan_of() gives the same whatever the measures.
bool orders_by_measures(const TrainingSetup& setup);

}  // namespace spillway::models
