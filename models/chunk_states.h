// ChunkStates: optimizer states of a stage's deep chunks in host memory (Chronos-Offload).
//
//   GPU     ... B7.1 | B6.0 B7.0 | update |  next step: F0.0 F1.0 ... F0.1
//   PCIe             [g][g][g] out    [w][w][w] in                    ^ waits for the chunk's weights
//   CPU                 [Adam][Adam][Adam]
//
// A deep chunk is updated first and used last, so between its last backward and its first forward of the next step it
// has the widest window; layer by layer, gradients leave when the chunk's last backward is done, Adam runs on a host
// thread of its own, and weights come back, in the next step if need be: Trace::carried says what waits for them then.
// With the optimizer on the GPU, states come in instead, behind the last backward, are updated with all others, and go
// out again; the next step's first one waits for that. What doesn't fit the window makes the step longer
// (sim/replay/step_pace.h).
//
// Held on the GPU all the time: weights and, with main gradients, gradients. Parameters outside the layers (an
// embedding, a head, final norms) stay on the GPU with their states, as gradients of copies are summed after the
// backward. No norm of all gradients holds the update of a chunk back. Source: the abstract of ChronosPipe (Lin et al.
// 2025); which tensors move when is our reconstruction.
#pragma once

#include <cstdint>
#include <vector>

#include "models/autograd.h"
#include "models/eager_session.h"
#include "models/training_setup.h"

namespace spillway {

class ChunkStates {
 public:
  // Of one chunk's parameters inside layers. Allocates states in host memory, and gradient buffers on the GPU where
  // they live all the time. sharers: GPUs of the machine whose updates share its cores.
  ChunkStates(const TrainingSetup& setup, EagerSession& session, const std::vector<TrainedParameter*>& parameters,
              std::int64_t sharers);

  // The chunk's gradients are complete, up to reductions that are under way.
  void leave();
  // With the step's update: on the GPU, the update itself; then gradients are given back, or zeroed.
  void update();

  // Of this step; the chunk's first kernel of the next step, or the first transfer of leave(), waits for them.
  [[nodiscard]] const std::vector<OpId>& last_transfers() const { return last_; }
  [[nodiscard]] OpId first_transfer() const { return first_; }
  [[nodiscard]] bool is_on_host() const { return setup_.optimizer_device == StateDevice::cpu; }

 private:
  struct Layer {
    std::int64_t index = 0, elements = 0;
    std::vector<TrainedParameter*> parameters;
    std::vector<Tensor> states;     // on the host: master weights where they are apart, moments
    Tensor gradient, weights;       // on the host, optimizer there
    std::vector<Tensor> on_device;  // states, from leave() to update()
  };

  void allocate(Layer& layer);
  void update_on_host(Layer& layer);
  void fetch(Layer& layer);
  [[nodiscard]] std::int64_t state_bytes() const;
  OpId transfer(OpKind kind, const char* name, std::vector<Tensor> reads, std::vector<Tensor> writes, Bytes bytes);

  const TrainingSetup& setup_;
  EagerSession& session_;
  std::int64_t sharers_;
  std::vector<Layer> layers_;  // in the order in which backwards finish
  std::vector<OpId> last_;
  OpId first_ = OpId::none;
};

}  // namespace spillway
