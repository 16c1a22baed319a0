// Whole weights between a training's steps: what loading and saving them takes, which steps don't (TrainingSetup's
// `loading` and `saving`).
//
//   loading first   the whole model once in a machine's host memory, in the type it is trained in (accelerate's
//                   fsdp_cpu_ram_efficient_loading; others are on the meta device)
//   loading each    once for each of the machine's GPUs
//   saving first    on each GPU the largest unit that is gathered beside what the step holds between steps; in one
//                   machine's host memory the whole model beside what the step has there (DeepSpeed's
//                   stage3_gather_16bit_weights_on_model_save: 16 bits; FSDP's FULL_STATE_DICT with rank0_only and
//                   offload_to_cpu: the type of its shards)
//   saving gpu      the whole model on each GPU beside what it holds (FULL_STATE_DICT without these two)
//
// A unit is a layer, or what lies outside the layers (FSDP's), under DeepSpeed one parameter. Deviations: files are
// read and written without a buffer, optimizer states stay shared, and what the allocator has cached is given back
// before.
#pragma once

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// By the model and the resolved set-up: `peak` is what it takes beside what is there anyway, on a GPU or (`on_host`) in
// a machine's host memory.
std::vector<PhaseResult> load_and_save(const ModelSpec& model, const TrainingSetup& setup, std::int64_t machine_gpus);

// Fills in `result.between_steps` with what is there too, and judges each.
void judge_load_and_save(const LoadedScenario& loaded, Result& result);

}  // namespace spillway::scenario
