// Fp8Scaling: the upkeep of fp8 scales as Transformer Engine's delayed scaling does it. Every linear layer has the
// largest values seen of five tensors over the last 1,024 passes, and a scale and its inverse for each. The five are
// input, weight, result, and the gradients of result and input. After a forward and after a backward the newest ones
// are gathered into one tensor and reduced over the ranks that share the layer's work. One kernel turns them into new
// scales.
//
// Deviation: the reduction runs over the tensor and the data group one after the other, not over one group of both.
#pragma once

#include <cstdint>

#include "models/session/communication.h"
#include "models/session/eager_session.h"

namespace spillway::models {

inline constexpr std::int64_t fp8_history = 1024;  // passes; transformer_engine.common.recipe.DelayedScaling

class Fp8Scaling {
 public:
  // `linears`: linear layers in fp8, >= 1. `communication` may be null. References must outlive the object.
  Fp8Scaling(std::int64_t linears, EagerSession& session, Communication* communication);

  void after_forward() { update(3); }
  void after_backward() { update(2); }

 private:
  void update(std::int64_t tensors);  // of each layer

  std::int64_t linears_;
  EagerSession& session_;
  Communication* communication_;
  Tensor state_;  // histories, scales and inverse scales, fp32
};

}  // namespace spillway::models
