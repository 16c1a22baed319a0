// From facts to a scenario's keys: what several flags decide together, and what one framework means by a flag.
#pragma once

#include <cstdint>

#include "launch/launch_ledger.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::launch {

// Precision, gradients' types, optimizer, attention, allocator.
void compose_kernels(LaunchLedger& ledger);

// The trained part: adapters, and the bytes of the base below them.
void compose_adapters(LaunchLedger& ledger);
// Losses of answers, and what is beside the trained model (launch_answers.cc).
void compose_preference(LaunchLedger& ledger);

// The split: sets the parallel sizes, ZeRO's stage and the place of state. `machines`: those that were named, all
// their GPUs and one's; 0: none. Throws InputError where the GPUs are no multiple of the layout.
struct MachineGpus {
  std::int64_t all = 0, each = 0;
};
void compose_layout(LaunchLedger& ledger, const MachineGpus& machines);

// Gradients in a bucket of DeepSpeed's where nothing is said (reduce_bucket_size).
std::int64_t deepspeed_bucket();

// Under DeepSpeed, what its file leaves to the model's width, `hidden`.
void compose_deepspeed(LaunchLedger& ledger, std::int64_t hidden);

// Micro-batches, the chunks of a pipeline and frozen layers, of a model that has `layers`.
void compose_batches(LaunchLedger& ledger, std::int64_t layers);

// The trained part of the model's vision tower, and the tokens of an image. How many images a sequence has is in the
// data.
void compose_tower(LaunchLedger& ledger, const ModelSpec& spec);

// Whether torch.autocast over fp32 weights is simulated for the set-up, which may leave it off.
bool may_autocast(TrainingSetup setup, const ModelSpec& spec);

}  // namespace spillway::launch
