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
// on a communicator of its own (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce).
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
#include <deque>
#include <map>
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

  // Around the backward of one micro-batch through one model part.
  void begin_backward(bool is_last_micro_batch);
  void end_backward();
  // All gradients of a layer are there; what is left of them is reduced (FSDP reduces each unit apart).
  void end_unit() {
    if (!setup_.traits().deepspeed) reduce();
  }
  // What was not overlapped with the backward, after its last kernel. Also sums what the tensor group has in parts
  // (sequence parallel).
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
  bool reduces_ = false;  // there is a group to reduce over
  bool is_last_ = false;
  std::map<std::string, std::int64_t> seen_;  // gradients of a parameter with several uses, in this backward
  std::vector<Tensor> held_;                  // of this backward (nanotron)
  std::vector<Pending> bucket_;
  std::int64_t bucket_bytes_ = 0;
};

// ZeRO stage 3: the weights of a layer are gathered before its forward and once more before its backward, so many
// layers ahead as the set-up's prefetch says, and given back after each. Backwards the layers ahead are asked for
// before the backward of the one at hand or, with late_prefetch, when its gradients have been handed to the reducer.
// Weights outside the layers are gathered once per micro-batch and kept to the end of its backward (as FSDP keeps its
// root module).
//
// DeepSpeed (deepspeed/runtime/zero/partitioned_param_coordinator.py) gathers the weights of each module apart, experts
// one by one, and ahead of their use as many elements as prefetch_elements says, in one piece that is there besides
// until it has been copied out. Its small parameters stay whole; weights that the backward comes to within 1e9 elements
// of the turn stay gathered; the embedding goes after its use, what comes behind the layers after its backward.
// Deviation: within a layer, all its modules are asked for at once.
//
// With weight_device cpu or drives a rank's part of a layer is first fetched to the GPU over PCIe, each GPU its own
// part (ZeRO-Infinity's bandwidth-centric partitioning), and gathered from there; it is asked for behind the kernels
// launched before.
class WeightGatherer {
 public:
  WeightGatherer(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                 std::deque<TrainedParameter>& parameters);

  void before(std::int64_t layer);
  void after(std::int64_t layer);
  void before_backward(std::int64_t layer);
  void after_backward(std::int64_t layer);
  void before_head();
  void end_backward();  // gives the rest back

 private:
  using Unit = std::vector<TrainedParameter*>;
  using Units = std::map<std::int64_t, Unit>;
  void gather(std::int64_t layer);
  void gather_modules(const Unit& unit, bool again);
  void gather_module(TrainedParameter& parameter, bool again);
  template <class Begin>
  void gather_ahead(Begin unit, Begin end);
  void release(Unit& unit);
  // Of those outside the layers: the embedding and what comes behind them; others stay to the end of the backward.
  [[nodiscard]] static bool goes_after_use(const TrainedParameter& parameter);
  void run_hooks(std::int64_t layer, Picos each);
  [[nodiscard]] bool is_kept_over_turn(std::int64_t layer) const;
  void gather(const std::vector<TrainedParameter*>& unit, bool experts);
  // What is to be gathered of these, on the GPU.
  [[nodiscard]] std::vector<Tensor> fetch(const std::vector<TrainedParameter*>& parameters);
  void gather_below(std::int64_t layer);  // those that the backward will come to
  [[nodiscard]] bool has(std::int64_t layer) const { return units_.find(layer) != units_.end(); }

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication& communication_;
  Units units_;                                 // by layer, -1 outside
  bool by_module_;                              // DeepSpeed
  std::map<std::int64_t, std::int64_t> hooks_;  // modules by layer
  Tensor ahead_;                                // what was gathered in one piece, ahead
};

}  // namespace spillway::models
