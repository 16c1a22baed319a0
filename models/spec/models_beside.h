// The models beside one that is trained on its own answers (loss group), as PPO has them (Schulman et al. 2017, arXiv
// 1707.06347; Ouyang et al. 2022, arXiv 2203.02155):
//
//   value model   a number for each token, trained beside the answers' model with weights, gradients and optimizer
//                 states of its own (verl's critic, OpenRLHF's --critic.model_name_or_path, trl's value_model)
//   reward model  the same network, never trained: weights in 16 bits
//
// Both have a head of one row in place of the vocabulary's. They are laid out over the GPUs as the trained model is.
#pragma once

#include <optional>

#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// The network with a head of one number a token. A tied embedding stays.
ModelSpec with_value_head(ModelSpec model);

// None where the set-up has none. Throws as find_model() does, with the key as the place.
std::optional<ModelSpec> value_model(const ModelSpec& trained, const TrainingSetup& setup);
std::optional<ModelSpec> reward_model(const ModelSpec& trained, const TrainingSetup& setup);

// How either is trained or run in a step of so many own micro-batches. All of the value model is trained,
// whatever adapters the other has. Precondition: `setup` is resolved.
TrainingSetup value_setup(const TrainingSetup& setup, std::int64_t batches);
TrainingSetup reward_setup(const TrainingSetup& setup, std::int64_t batches);
// The value model's micro-batches in a step.
std::int64_t value_batches(const TrainingSetup& setup);

}  // namespace spillway::models
