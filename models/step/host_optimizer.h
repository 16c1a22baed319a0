// HostOptimizer: optimizer state in host memory or on drives, Adam on the CPU.
//
//   GPU      | forward | backward: gradients in buckets |            |      weights in 16 bits
//   PCIe                     [ out ][ out ][ out ][ out ]       [ in ][ in ][ in ]
//   CPU                                                 [ Adam ][ Adam ][ Adam ]         group by group
//   drives                                           [read][read][write]...              optimizer_device drives
//
// ZeRO-Offload (arXiv 2101.06840, sections 3 to 5): the GPU keeps weights in 16 bits. Gradients leave during the
// backward, as each bucket is reduced. Adam reads gradient, master weight and moments and writes the last three and the
// 16-bit weight. A group's weights go back while the next one is updated. With M parameters in mixed precision 2M bytes
// go out and 2M come back each step, and 14M bytes stay in host memory.
//
// delayed_update is its one-step delayed update. The CPU works with the last step's gradients from the step's start on,
// beside the GPU, and all weights come back after the backward. A second set of gradients and all 16-bit weights are
// then in host memory.
//
// ZeRO-Infinity (arXiv 2104.07857, section 5): gradients go on to the drives in fp32. Master weights, moments and
// gradients are read group by group, the first two written back: 16M bytes read, 16M written.
//
// Deviations. Gradients of several micro-batches add up on the GPU, leaving in the last one (the runtime adds them on
// the host). The update begins when the last gradient is out, as a norm of all of them needs; the norm itself takes no
// time. With DeepSpeed as a framework gradients leave in every micro-batch, and an fp32 copy of them is on the host,
// under ZeRO 1 and 2 also the weights in 16 bits. The update is three passes, 44 bytes a parameter: the gradient is
// scaled in fp32, Adam, weights are cast and copied out. A group is a layer, so fixed pools of buffers of a set size
// are not modelled; reading ahead has three buffers of the largest group. Copies of the host's own, such as casts
// beside Adam, take no DRAM bandwidth from transfers.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class HostOptimizer {
 public:
  // Allocates everything in host memory. References must outlive the object; `communication` may be null. sharers: GPUs
  // of the machine that share its cores for updates.
  HostOptimizer(const TrainingSetup& setup, EagerSession& session, const std::vector<TrainedParameter*>& parameters,
                Communication* communication, std::int64_t sharers);

  // Copies gradients, ready to be updated with, to the host in one piece; those on the GPU go when that is done. The
  // host waits for the copy before last, so that two are in flight.
  void take(const std::vector<TrainedParameter*>& bucket);
  // Gradients with copies in flight are given up at once: for pipeline schedules, where what follows isn't known.
  void forget();

  // Sends the gradients that have not left yet, then makes one update of every parameter. Returns the last call that
  // the next step waits for, as the program makes both in turn; none if the update is delayed and runs beside that
  // step.
  OpId run();

 private:
  struct Group {
    std::vector<TrainedParameter*> parameters;
    std::int64_t layer = -1, elements = 0;
    Tensor master, first_moment, second_moment;  // none of them on drives
    Tensor gradient, last_gradient;
    Tensor weights;        // delayed update: until the copy back; DeepSpeed's ZeRO 1 and 2: staging
    Tensor wide_gradient;  // DeepSpeed's
  };
  struct InFlight {
    OpId op = OpId::none;
    std::vector<Tensor> held;
  };

  void allocate(Group& group);
  void allocate_buffers();
  [[nodiscard]] std::int64_t state_bytes() const;  // of a parameter: master weight and moments
  [[nodiscard]] Bytes adam_bytes(const Group& group) const;
  [[nodiscard]] double most_rate() const;  // of the process, in bytes per second
  [[nodiscard]] std::vector<Tensor> states(const Group& group, std::size_t index) const;
  void take_rest();
  void await_last();
  OpId update_now();
  void update_delayed();
  void read_states(std::size_t index);
  void write_states(std::size_t index);
  OpId adam(std::size_t index, const Tensor& gradient, const std::vector<Tensor>& weights);
  void send_weights(const Group& group, const Tensor& from);
  void zero_gradients();

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication* communication_;
  std::int64_t sharers_;
  std::vector<TrainedParameter*> parameters_;
  std::vector<Group> groups_;
  std::vector<Tensor> state_buffers_;   // with states on drives
  std::vector<Tensor> weight_buffers_;  // of updated 16-bit weights on their way
  std::deque<InFlight> copies_, writes_;
  OpId last_copy_ = OpId::none, last_write_ = OpId::none;
  std::vector<OpId> awaited_;  // by the update
};

}  // namespace spillway::models
