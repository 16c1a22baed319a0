// ChunkStates: optimizer states of a stage's deep chunks in host memory (Chronos-Offload).
//
//   GPU     ... B7.1 | B6.0 B7.0 | update |  next step: F0.0 F1.0 ... F0.1
//   PCIe             [g][g][g] out    [w][w][w] in                    ^ waits for the chunk's weights
//   CPU                 [Adam][Adam][Adam]
//
// A deep chunk is updated first and used last, so between its last backward and its first forward of the next step it
// has the widest window. Layer by layer, gradients leave when the chunk's last backward is done, Adam runs on a
// separate host thread, and weights come back. They come in the next step if need be: Trace::carried says what waits
// for them. With the optimizer on the GPU, a layer's states come in, Adam runs on a separate stream, and they go out
// again. They pass through two buffers of one layer's states each, which the next step fills again when they are empty.
// Work beyond the window makes the step longer (sim/replay/step_pace.h). Kernels of the two streams are timed as if
// alone: Adam moves 28 bytes a parameter that the links bring at a fiftieth of the memory's rate.
//
// Under ZeRO stages 1 and 2 a rank moves and updates its share. Gradients leave behind their reduce-scatter. The
// weights that came back are gathered layer by layer, on a separate communicator (CommGroup::updated_weights).
//
// Held on the GPU all the time: weights and, with main gradients, gradients. Parameters outside the layers (an
// embedding, a head, final norms) stay on the GPU with their states, as gradients of copies are summed after the
// backward. So do norms with gradients that are sums over the tensor group (sequence parallelism). No norm of all
// gradients holds the update of a chunk back. Source: the abstract of ChronosPipe (Lin et al. 2025); which tensors move
// when is our reconstruction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/session/autograd.h"
#include "models/session/communication.h"
#include "models/session/eager_session.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class ChunkStates {
 public:
  // The states of one chunk's parameters inside layers. Allocates states in host memory, and gradient buffers on the
  // GPU where they live all the time. sharers: GPUs of the machine that share its cores for updates.
  ChunkStates(const TrainingSetup& setup, EagerSession& session, Communication& communication,
              const std::vector<TrainedParameter*>& parameters, std::int64_t sharers);

  // The chunk's gradients are complete, up to reductions that are under way: they leave, or states come, are updated
  // and go.
  void update();
  // At the step's end gradients are given back, or zeroed.
  void end_step();

  // The op that made this step's new weights; the chunk's first kernel of the next step waits for it.
  [[nodiscard]] const std::vector<OpId>& new_weights() const { return new_weights_; }
  // With the optimizer on the GPU: fills and empties the two buffers. A buffer's first filling in the next step waits
  // for its last emptying in this one. OpId::none with the optimizer on the CPU or for a second buffer that isn't used.
  struct BufferUse {
    OpId first_in = OpId::none, last_out = OpId::none;
  };
  [[nodiscard]] const std::array<BufferUse, 2>& buffers() const { return buffer_use_; }

 private:
  struct Layer {
    std::int64_t index = 0, elements = 0;
    std::vector<TrainedParameter*> parameters;
    std::vector<Tensor> states;  // on the host: master weights where they are apart, moments
    Tensor gradient, weights;    // on the host, optimizer there
  };

  void allocate(Layer& layer);
  void allocate_buffers();
  [[nodiscard]] bool is_on_host() const { return setup_.optimizer_device == StateDevice::cpu; }
  void update_on_host(Layer& layer);
  void update_on_device(Layer& layer, std::size_t buffer);
  void gather_weights(const Layer& layer);
  [[nodiscard]] std::int64_t state_bytes() const;
  OpId transfer(OpKind kind, const char* name, std::vector<Tensor> reads, std::vector<Tensor> writes, Bytes bytes);

  const TrainingSetup& setup_;
  EagerSession& session_;
  Communication& communication_;
  std::int64_t sharers_;
  std::vector<Layer> layers_;  // in the order in which backwards finish
  std::array<std::vector<Tensor>, 2> buffers_;
  std::array<BufferUse, 2> buffer_use_;
  std::vector<OpId> new_weights_;
};

}  // namespace spillway::models
