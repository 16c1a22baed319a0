// ReferencePass: the forward of the model that a preference loss compares with, behind the trained model's of each
// micro-batch (trl/trainer/dpo_trainer.py). Nothing of it is kept but the log-probabilities of the labels, a number
// each.
//
//   model   weights in 16 bits of its own, never trained: whole, or with ZeRO stage 3 shares that are gathered layer by
//           layer, as an evaluation's are
//   base    the trained model's frozen weights, adapters left out
#pragma once

#include <memory>
#include <optional>

#include "models/network/transformer.h"
#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "models/step/weight_gatherer.h"

namespace spillway::models {

class ReferencePass {
 public:
  // Allocates its weights. Preconditions: `setup` is resolved and has a reference; with zero_stage 3 and with more
  // ranks `communication` is not null. References must outlive the object.
  ReferencePass(const ModelSpec& model, const TrainingSetup& setup, EagerSession& session, Autograd& autograd,
                Communication* communication);

  // Behind a forward of `trained` with the same tokens.
  void run(Transformer& trained, const Tensor& ids, const Tensor& labels);

 private:
  TrainingSetup setup_;  // of a model that nothing is trained of
  Autograd& autograd_;
  std::unique_ptr<Transformer> own_;
  std::optional<WeightGatherer> gatherer_;
};

}  // namespace spillway::models
