// GradientReducer: what becomes of a rank's gradients: added up, reduced over the ranks with the same weights, in
// buckets, overlapped with the backward or after it.
//
//   ZeRO 0   added up over the micro-batches, all-reduced in place during the last one (PyTorch DDP, Megatron-LM)
//   ZeRO 1   the same with reduce-scatter (Megatron-LM's distributed optimizer); each rank's share is what counts
//   ZeRO 2, 3  reduce-scattered in every micro-batch, the shares added up behind that, beside the backward (on the
//              stream of the reduction: foreach_reduce, as below); the whole gradients go with their bucket.
//              With late_reduction whole ones are added up, and reduce-scattered during the last micro-batch
//
// With shard_groups, stages 1 to 3 reduce-scatter within a group, and all-reduce the shares over the groups behind it,
// on a separate communicator (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce).
//
// With the optimizer on the CPU, gradients of the last micro-batch leave bucket by bucket, after their reduction.
//
// Experts spread over e ranks are reduced over the ranks that hold the same ones, in the same buckets. After the
// backward, framework megatron: divided by the number of replicas and reduced in one piece.
//
// A bucket takes gradients in the order in which the backward finishes them, until it has bucket_bytes; in whole_layers
// a layer's go together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/training_setup.h"
#include "models/step/deepspeed_zero.h"
#include "models/step/host_optimizer.h"

namespace spillway::models {

class GradientReducer {
 public:
  // Sets itself as the sink of `autograd`. References must outlive the object. `communication` may be null.
  GradientReducer(const TrainingSetup& setup, EagerSession& session, Autograd& autograd, Communication* communication);

  // DeepSpeed's: it gets all gradients, and does the rest itself; it must outlive the object.
  void set_zero(DeepspeedZero& zero) { zero_ = &zero; }
  // Gradients are handed to it when they are ready; it must outlive the object.
  void set_host(HostOptimizer& host) { host_ = &host; }

  // Whole gradients of one GPU are handed to it one by one, and gone then.
  using Update = std::function<void(TrainedParameter& parameter)>;
  void set_update(Update update) { update_ = std::move(update); }

  // Around the backward of one micro-batch through one model part.
  void begin_backward(bool is_last_micro_batch);
  void end_backward();
  // All gradients of a layer are there; what is left of them is reduced (FSDP reduces each unit apart).
  void end_unit() {
    if (!setup_.traits().deepspeed) reduce();
  }
  // Reduces what was not overlapped with the backward, after its last kernel. Also sums what the tensor group has in
  // parts (sequence parallel).
  void finish(const std::vector<TrainedParameter*>& parameters);

 private:
  struct Pending {
    TrainedParameter* parameter = nullptr;
    Tensor gradient;
  };
  void take(TrainedParameter& parameter, Tensor gradient);
  void keep_whole(TrainedParameter& parameter, Tensor gradient);  // late_reduction
  void put(TrainedParameter& parameter, Tensor gradient);
  void finish_as_megatron(const std::vector<TrainedParameter*>& parameters);
  void reduce();
  void reduce(bool experts);  // those of the bucket that are spread over ranks, or the rest
  void reduce_bucket();
  void hand_over();     // to the CPU
  void widen_bucket();  // fp32_reduction
  void reduce_to_shares(CommGroup group, const std::vector<Pending>& bucket);
  [[nodiscard]] bool shares_gradients() const { return setup_.zero_stage >= 2 && reduces_; }

  const TrainingSetup& setup_;
  EagerSession& session_;
  Autograd& autograd_;
  Communication* communication_;
  HostOptimizer* host_ = nullptr;
  DeepspeedZero* zero_ = nullptr;
  Update update_;
  bool reduces_ = false;  // there is a group to reduce over
  bool is_last_ = false;
  std::map<std::string, std::int64_t> seen_;  // gradients of a parameter with several uses, in this backward
  std::vector<Tensor> held_;                  // of this backward (nanotron)
  std::vector<Pending> bucket_;
  std::int64_t bucket_bytes_ = 0;
};

}  // namespace spillway::models
