// An evaluation between training steps: forwards of some micro-batches, nothing kept for a backward.
//
//   Megatron-LM    evaluate(): the training's schedule with forward_only, micro-batches of the same size,
//                  --eval-iters global batches every --eval-interval steps (megatron/training/training.py)
//   transformers   evaluation_loop(): batches of per_device_eval_batch_size; with compute_metrics and without
//                  prediction_loss_only the logits of all processes and batches are joined on the GPU, until
//                  eval_accumulation_steps batches have come together or all (trainer.py, trainer_pt_utils.py)
//   torchtitan     validate(): validation.steps batches every validation.freq steps (components/validate.py)
//
// Dropout is off, graphs captured for training are not replayed. In a pipeline micro-batches go forward in groups of as
// many as there are stages, chunk by chunk (interleaving's order; without chunks one after another).
//
// Deviations: labels, masks and losses are not kept beside logits (8 bytes a token). A schedule that cuts sequences or
// runs both ways evaluates whole sequences one way. Experts' draws are one more step's.
#pragma once

#include <cstdint>

#include "models/cost/cost_model.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "models/step/parallel_trace.h"
#include "traces/trace.h"

namespace spillway::models {

// The resolved set-up of an evaluation's forwards from a resolved one of training.
TrainingSetup evaluation_setup(const TrainingSetup& training, std::int64_t batches);

// How many of an evaluation's batches are generated: all where logits are kept; else not more than show what one more
// batch takes, from where the pipeline runs evenly.
std::int64_t simulated_batches(const TrainingSetup& training);

// The forwards of so many batches, one rank for each stage, as generate_parallel_trace() has them. Precondition: the
// set-up is resolved and has evaluate_every.
Trace generate_evaluation(const ModelSpec& model, const TrainingSetup& training, const CostModel& cost,
                          const Cluster& cluster, std::int64_t batches);

}  // namespace spillway::models
