// WeightGatherer: what of a rank's weights is whole on the GPU, and when.
//
// ZeRO stage 3: the weights of a layer are gathered before its forward and once more before its backward, and given
// back after each. They are asked for as many layers ahead as the set-up's prefetch says. Backwards the layers ahead
// are asked for before the backward of the one at hand or, with late_prefetch, when its gradients have been handed to
// the reducer. Weights outside the layers are gathered once per micro-batch and kept to the end of its backward (as
// FSDP keeps its root module).
//
// DeepSpeed (deepspeed/runtime/zero/partitioned_param_coordinator.py) gathers the weights of each module apart, experts
// one by one. It gathers as many elements ahead of their use as prefetch_elements says, in one piece that is there
// besides until it has been copied out. Its small parameters stay whole. Weights that the backward reaches within 1e9
// elements of the turn stay gathered. The embedding goes after its use, weights behind the layers after their backward.
// Deviation: within a layer, all its modules are asked for at once.
//
// With weight_device cpu or drives a rank's part of a layer is first fetched to the GPU over PCIe, and gathered from
// there. Each GPU fetches its own part (ZeRO-Infinity's bandwidth-centric partitioning). It is asked for behind the
// kernels launched before.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class WeightGatherer {
 public:
  // References must outlive the object. evaluates: no backward will come.
  WeightGatherer(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                 std::deque<TrainedParameter>& parameters, bool evaluates);

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
  // Weights outside the layers: the embedding and what comes behind them; others stay to the end of the backward.
  [[nodiscard]] static bool goes_after_use(const TrainedParameter& parameter);
  void run_hooks(std::int64_t layer, Picos each);
  [[nodiscard]] bool is_kept_over_turn(std::int64_t layer) const;
  void gather(const std::vector<TrainedParameter*>& unit, bool experts);
  // The parts of these to be gathered, on the GPU.
  [[nodiscard]] std::vector<Tensor> fetch(const std::vector<TrainedParameter*>& parameters);
  void gather_below(std::int64_t layer);  // those that the backward still reaches
  [[nodiscard]] bool has(std::int64_t layer) const { return units_.find(layer) != units_.end(); }

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication& communication_;
  Units units_;  // by layer, -1 outside, below it a tower's
  bool evaluates_;
  bool by_module_;                              // DeepSpeed
  std::map<std::int64_t, std::int64_t> hooks_;  // modules by layer
  Tensor ahead_;                                // what was gathered in one piece, ahead
};

}  // namespace spillway::models
