// DeepspeedZero: gradients, states and the update of DeepSpeed's ZeRO with states on the GPU, as 0.17 and 0.18 have
// them (deepspeed/runtime/zero/stage_1_and_2.py, stage3.py). Everything of a group of parameters is one flat tensor. N
// parameters of a rank, s of them its share, n of them a sub-group's.
//
//   stage 1, 2   each gradient is copied into a bucket and goes; a full one is copied together, all-reduced whole
//                (use_multi_rank_bucket_allreduce), and what is the rank's own is copied to a flat buffer that lives
//                until the last group has stepped: s, and the rest of the parameters that reach over its edges. From
//                the second micro-batch on a second one is added to it. Stage 1 adds whole gradients up, and does this
//                in the last micro-batch alone
//   stage 3      the bucket and flat gradients of s are there for good; a full bucket is reduce-scattered, the result
//                added up
//   a gradient larger than a bucket travels alone, uncopied
//   norm         each gradient of a rank in fp64, one after another; fp16 first looks for overflows
//   update       by group (stage 1, 2: matrices, then norms and biases; stage 3: sub_group parameters of these): the
//                gradient copied flat, cast to fp32, the optimizer with its temporaries, weights back to 16 bits
//
// So ZeRO 1 and 2 peak at 2 N + 20 s (22 s foreach), and ZeRO 3 at 16 s + max(6, 4 + 4 foreach) n beside its buckets.
//
// Deviations: moments are there from the start on (made in the first step since 0.13.2, with a peak 2 s or less lower).
// The head's last gradient does not wait in its bucket for the next hook. The start-up leaves nothing in the
// allocator's cache.
#pragma once

#include <cstdint>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class DeepspeedZero {
 public:
  // Allocates states and what is there for good. `setup` has_flat_states(). References must outlive the object.
  DeepspeedZero(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                const std::vector<TrainedParameter*>& parameters);

  // During the backward of a micro-batch: each gradient, whole, and the end.
  void take(TrainedParameter& parameter, Tensor gradient, bool is_last);
  void end_backward(bool is_last);
  void update();

 private:
  struct Group {
    std::vector<TrainedParameter*> parameters;
    std::int64_t share = 0;  // of all
    Tensor master, first_moment, second_moment;
  };
  void allocate(Group& group);
  void put(TrainedParameter& parameter, Tensor gradient);
  void reduce();
  void reduce(const Tensor& whole, std::int64_t share);
  void keep(const Tensor& part);
  void look_at_norm();
  void step(const Group& group);
  void adam(const Group& group, const std::vector<Tensor>& weights, const Tensor& gradient);
  void pass(std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes);
  [[nodiscard]] Tensor temporary(const char* name, DataType type, std::int64_t elements);
  [[nodiscard]] bool splits_gradients() const { return setup_.zero_stage == 3; }
  [[nodiscard]] DataType gradient_type() const;  // as the backward makes them
  [[nodiscard]] DataType kept_type() const;

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication& communication_;
  std::vector<Group> groups_;
  std::int64_t share_ = 0, edge_ = 0;  // of all parameters; of those that reach over the share's ends, at most
  std::int64_t largest_ = 0;           // gradient of which the rank takes a norm
  std::int64_t bucket_elements_ = 0;
  std::vector<Tensor> buckets_;  // two take turns where reductions overlap
  std::size_t at_ = 0;
  std::int64_t filled_ = 0, filled_share_ = 0;
  Tensor gradients_, fresh_;  // flat: of the step so far, and of stages 1 and 2 in this micro-batch
};

}  // namespace spillway::models
