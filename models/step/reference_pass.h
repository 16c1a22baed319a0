// ReferencePass: the forwards without gradients that a loss of answers asks for, behind the trained model's of each
// micro-batch. Nothing of them is kept but the log-probabilities of the labels, a number each.
//
//   preference  the reference's (trl/trainer/dpo_trainer.py)
//   unpaired    the trained model's of as many other answers, and the reference's of both (trl/trainer/kto_trainer.py).
//               Deviation: there the first is before the forward with gradients
//   group       none: a phase of its own has them (reference_setup()); the reference's weights are held
//
// The reference is
//
//   model   weights in 16 bits of its own, never trained: whole, or with ZeRO stage 3 shares that are gathered layer by
//           layer, as an evaluation's are
//   base    the trained model's frozen weights, adapters left out
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/network/transformer.h"
#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "models/step/weight_gatherer.h"

namespace spillway::models {

// The reference's own set-up: nothing is trained, and the base's weights are stored as they are beside adapters.
TrainingSetup reference_setup(const ModelSpec& model, const TrainingSetup& setup);

class ReferencePass {
 public:
  // Allocates the weights of its part. Preconditions: `setup` is resolved and compares_answers(); with zero_stage 3 and
  // with more ranks `communication` is not null. References must outlive the object.
  ReferencePass(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part, EagerSession& session,
                Autograd& autograd, Communication* communication);

  // Forwards beside the trained one; each goes through a pipeline's stages behind it, with own messages.
  [[nodiscard]] std::size_t forwards() const;

  // Behind a forward of `trained` with the same tokens. `passed`: what came from the stage before for each of the
  // forwards, then what goes to the next; without the embedding or the head none.
  void run(Transformer& trained, const Tensor& ids, const Tensor& labels, std::vector<Tensor>& passed);

 private:
  TrainingSetup setup_;  // of a model that nothing is trained of
  Reference reference_;
  ModelPart part_;
  Autograd& autograd_;
  std::unique_ptr<Transformer> own_;
  std::optional<WeightGatherer> gatherer_;
};

}  // namespace spillway::models
