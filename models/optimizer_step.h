// The optimizer's state and its kernels, as PyTorch's foreach and fused implementations launch them.
//
// One parameter group per layer (and one for what lies outside the layers) bounds the temporaries. A multi-tensor
// launch takes at most 320 chunks of 65,536 elements, and fewer tensors the more lists it works on (110, 64, 48, 36,
// 30 for one to five lists), as at::native::multi_tensor_apply does.
#pragma once

#include <deque>
#include <string_view>
#include <vector>

#include "models/autograd.h"
#include "models/training_setup.h"

namespace spillway {

class OptimizerStep {
 public:
  // Allocates master weights, moments and, with fp32_gradients, the gradient buffers.
  OptimizerStep(const TrainingSetup& setup, EagerSession& session, std::deque<TrainedParameter>& parameters);

  // One update of every parameter that has a gradient, then gradients that do not live all the time are given back.
  void run();

 private:
  using Group = std::vector<TrainedParameter*>;
  using List = std::vector<Tensor>;  // one tensor per parameter of a group
  using Lists = std::vector<List>;   // of equal length

  void update(const Group& group);
  void adamw_foreach(const List& weights, const List& gradients, const List& first, const List& second);
  // One elementwise operation over lists: as many launches as the limits above ask for.
  void foreach_kernel(std::string_view name, const Lists& reads, const Lists& writes);

  const TrainingSetup& setup_;
  EagerSession& session_;
  std::vector<Group> groups_;
};

}  // namespace spillway
