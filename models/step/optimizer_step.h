// The optimizer's state and its kernels, as PyTorch's foreach and fused implementations launch them.
//
// One parameter group per layer (and one for what lies outside the layers) bounds the temporaries; Megatron-LM's
// optimizer works on all parameters at once. A multi-tensor launch takes at most 320 chunks of 65,536 elements, as
// at::native::multi_tensor_apply does. It takes fewer tensors the more lists it works on: 110, 64, 48, 36, 30 for one
// to five lists.
//
//   Adafactor    Shazeer & Stern 2018: a row and a column of second-moment factors per matrix, no first moment
//   8-bit AdamW  Dettmers et al. 2022: one byte per moment, a fp32 scale per 256 of them (bitsandbytes since 0.44;
//   2,048
//                before); tensors below 4,096 elements, and embeddings under transformers' Trainer
//                (trainer.py, create_optimizer), keep 32-bit moments; one kernel per tensor
//   torchao's    the same in a byte or half a byte, a scale per 256 or 128 (torchao/optim/subclass_8bit.py,
//                subclass_4bit.py); tensors below 4,096 elements, or that blocks don't divide, have plain moments
//   Muon         Jordan 2024: momentum, five Newton-Schulz steps in bf16 (three products each) for matrices inside
//                layers, one of each expert; AdamW for the rest. ZeRO gives whole matrices to ranks in turn
//                (Megatron-core's layer_wise_optimizer.py; stages 2 and 3: dist_muon of torchtitan and axolotl, which
//                sends shares to the matrix's rank and back): bytes are an even share, steps those of the busiest rank
//   GaLore       Zhao et al. 2024, arXiv 2403.03507: of a matrix in layers, m no taller than n wide, a projection [m,
//   r]
//                and moments [r, n] in the type of moments; a new projection takes a singular value decomposition in
//                fp32, which is part of the peak (4 (2 m n + m m) bytes) and, as it comes every 200 steps, of no time
//   APOLLO       Zhu et al. 2024, arXiv 2412.05270: the same moments, the projection made from a seed for each use; the
//                whole gradient is scaled by channel
//   LOMO         Lv et al. 2023, arXiv 2306.09782, AdaLomo 2310.10195: update_now() for each gradient of the backward,
//                with weight and gradient in fp32 for the while; AdaLomo has Adafactor's row and column factors
//
// With ZeRO each rank updates its share; stages 1 and 2 then gather the weights.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// Types of weights, gradients and states: all are fp32 or bf16.
[[nodiscard]] constexpr DataType type_of_bytes(std::int64_t bytes) {
  return bytes == 4 ? DataType::fp32 : DataType::bf16;
}

// With main gradients: the buffer they are added up in. shares: it is as large as what the rank updates.
void allocate_main_gradient(const TrainingSetup& setup, EagerSession& session, TrainedParameter& parameter,
                            bool shares);
// ZeRO stages 1 and 2: every rank gets the weights that the others have updated.
void gather_updated_weights(const TrainingSetup& setup, Communication* communication,
                            const std::vector<TrainedParameter*>& parameters);

class OptimizerStep {
 public:
  // Allocates master weights, moments and, with main gradients, the gradient buffers. `communication` may be null.
  OptimizerStep(const TrainingSetup& setup, EagerSession& session, const std::vector<TrainedParameter*>& parameters,
                Communication* communication);

  // One update of every parameter that has a gradient, then gradients that do not live all the time are given back.
  void run();
  // With TrainingSetup::updates_in_backward(): of one parameter, its gradient goes.
  void update_now(TrainedParameter& parameter);

 private:
  using Group = std::vector<TrainedParameter*>;
  using List = std::vector<Tensor>;  // one tensor per parameter of a group
  using Lists = std::vector<List>;   // of equal length

  void allocate_state(TrainedParameter& parameter);
  [[nodiscard]] bool is_muon(const TrainedParameter& parameter) const;
  [[nodiscard]] bool has_small_state(const TrainedParameter& parameter) const;  // moments in a byte or less
  [[nodiscard]] bool is_projected(const TrainedParameter& parameter) const;
  [[nodiscard]] static bool has_wide_shard(const Group& group);
  void copy_back(const Group& group);
  [[nodiscard]] List weights_of(const Group& group) const;  // what the rank keeps all the time
  void prepare_gradients(const Group& all);
  void update(const Group& group);
  void update_moments(const Group& group, const List& weights, const List& gradients);
  void fused(const Group& group, const List& weights, const List& gradients, bool copies);
  void adam_foreach(const Group& group, const List& weights, const List& gradients);
  void adafactor(const Group& group, const List& weights, const List& gradients);
  void narrow_adamw(const Group& group, const List& weights, const List& gradients);
  void projected_adamw(const Group& group, const List& weights, const List& gradients);
  void project(TrainedParameter& parameter, const Tensor& weight, const Tensor& gradient);
  void muon(const Group& group, const List& weights, const List& gradients);
  void product(std::string_view name, DataType type, const GemmShape& shape, const List& reads, const Tensor& write);
  void newton_schulz(const Parameter& shape, std::int64_t count, const Tensor& matrix);
  void give_back(const Group& group);
  // One elementwise operation over lists: as many launches as the limits above ask for, the first of which reads
  // `after` too.
  void foreach_kernel(std::string_view name, const Group& group, const Lists& reads, const Lists& writes,
                      const std::vector<Tensor>& after = {});

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication* communication_;
  std::vector<Group> groups_;
  std::array<std::int64_t, 2> next_matrix_{};  // Muon's matrices that came before in this update: dense, of experts
  std::vector<Tensor> wide_gradients_;         // fp32 copies of all, from prepare_gradients to the end of the update
};

}  // namespace spillway::models
