// Autograd: records what an eager program's backward pass will do, then does it, newest node first.
//
// A node keeps the tensors its backward needs inside its function; they are freed when the node has run. Gradients
// that meet at one node are added in place when nobody else holds the older one, as in PyTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/session/eager_session.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

// A parameter and what training keeps beside it.
struct TrainedParameter {
  Parameter shape;  // of this rank's part
  Tensor value;     // with ZeRO stage 3 there only while its unit is at work
  Tensor shard;     // ZeRO stage 3: what is there all the time
  // FSDP in mixed precision: the shard is the fp32 weight, `master` the same tensor, and `value` of this type.
  std::optional<DataType> gathered_type;
  Tensor
      gradient;  // empty until a backward made it, unless gradients live all the time; stage 2 and 3: this rank's share
  Tensor master;                              // fp32 copy, mixed precision only
  Tensor first_moment, second_moment;         // Adafactor: row and column factors of a matrix
  Tensor first_scale, second_scale;           // of moments in 8 bits
  std::int64_t share = 0;                     // elements with optimizer state on this rank
  Tensor whole_gradient;                      // of the micro-batches so far, reduced in the last (late_reduction)
  bool is_partial_sum = false;                // sequence parallel: its gradient is summed over the tensor group
  bool is_summed_late = false;                // or over pipeline stages, after the backward
  bool is_expert = false;                     // replicated over the expert-gradient group, not the gradient group
  std::int64_t uses = 1;                      // gradients that meet in it in one backward
  std::int64_t met = 0;                       // of them so far (DeepspeedZero)
  bool trains = true;                         // else frozen: no gradient, no optimizer state
  BaseWeights storage = BaseWeights::same;    // of a frozen matrix
  std::int64_t stored = 0, stored_share = 0;  // elements of value and of shard
  Tensor scales, second_scales;               // of packed values; whole on every rank
  TrainedParameter *adapter_a = nullptr, *adapter_b = nullptr;  // of a frozen matrix
  bool in_fp8 = false;                                          // its products are done in fp8
  Tensor narrow, narrow_transposed;  // fp8 copies that live all the time; empty with ZeRO stage 3
  bool is_narrowed = false;          // they are up to date
  std::size_t host_group = 0;        // of the optimizer on the CPU
  bool is_gradient_on_host = false;  // in this step

  [[nodiscard]] DataType type() const { return value ? value.type() : gathered_type.value_or(shard.type()); }
};

class Autograd {
 public:
  // Gradients of the node's inputs, in their order; an empty one means none.
  using Backward = std::function<std::vector<Tensor>(Tensor gradient)>;
  using Function = std::function<Tensor(const std::vector<Tensor>& inputs)>;

  explicit Autograd(EagerSession& session) : session_(session) {}

  // `output` as the result of a new node. While recording is off, `output` itself: `backward` and what it holds go. The
  // same for an output without an input that needs a gradient, unless it `has_parameters`.
  Tensor record(Tensor output, const std::vector<Tensor>& inputs, bool has_parameters, Backward backward);

  // false inside a checkpoint's forward, which has no backward.
  [[nodiscard]] bool is_recording() const { return recording_; }
  // Off for a forward that is done over again as a whole before its backward.
  void set_recording(bool records) { recording_ = records; }
  // The number the next node will get.
  [[nodiscard]] std::uint32_t next_node() const { return static_cast<std::uint32_t>(nodes_.size()); }

  // function(inputs) without keeping anything but the inputs; the backward runs it again in phase recompute. It is
  // plain function(inputs) where no gradient is wanted.
  Tensor checkpoint(const std::vector<Tensor>& inputs, const Function& function, bool has_parameters);

  // How long a checkpoint's backward holds what it has. `none`: no longer than needed. `result`: its second result
  // until it ends (PyTorch's reentrant one). `inputs`: that, and its inputs with their gradients until the whole
  // backward ends (FSDP 1, frozen weights).
  enum class Retention : std::uint8_t { none, result, inputs };
  void set_retention(Retention retention) { retention_ = retention; }

  // Runs all recorded nodes from `root` and forgets them.
  void backward(const Tensor& root, Tensor gradient);

  // A gradient of a parameter has come into being: goes to the sink, or is added.
  void accumulate(TrainedParameter& parameter, Tensor gradient);
  // Takes over the first gradient of a parameter, adds later ones in place.
  // `beside`: on the second stream, which no kernel waits for but those that read it.
  void add(TrainedParameter& parameter, Tensor gradient, bool beside = false);
  // Work of a backward for gradients of weights alone, which no other gradient waits for. It is done at once. While
  // deferring it is put off, with all it holds, until run_deferred(), which does it in the order in which it came.
  void weight_work(std::function<void()> work);
  void set_deferring(bool defers) { deferring_ = defers; }
  [[nodiscard]] bool is_deferring() const { return deferring_; }
  void run_deferred();
  using Sink = std::function<void(TrainedParameter& parameter, Tensor gradient)>;
  void set_sink(Sink sink) { sink_ = std::move(sink); }

  // A tensor from outside the graph that gets a gradient.
  Tensor leaf(const Tensor& tensor);
  // Runs all nodes after the leaves', from the root's down, forgets them, and gives the leaves' gradients. So many
  // leaves were made one after the other, before any other node, `first` their first node; none: 0 of 1.
  std::vector<Tensor> backward_to(std::uint32_t first, std::size_t leaves, std::uint32_t root, Tensor gradient);

 private:
  struct Node {
    std::vector<std::uint32_t> inputs;  // nodes; 0: no gradient wanted
    Backward backward;
    std::int64_t layer = -1;
    bool is_captured = false;  // its forward was, and so is its backward
    double crowding = 1;       // of its forward
    Tensor gradient;
  };
  void run_down_to(std::size_t floor);
  void pass(std::uint32_t node, Tensor gradient);

  EagerSession& session_;
  std::vector<Node> nodes_ = std::vector<Node>(1);  // node 0 stands for "none"
  struct Deferred {
    std::function<void()> work;
    std::int64_t layer = -1;
    bool is_captured = false;
    double crowding = 1;
  };
  std::vector<Deferred> deferred_;
  bool recording_ = true, deferring_ = false;
  Retention retention_ = Retention::none;
  std::vector<Tensor> retained_;  // until the backward ends
  Sink sink_;
};

}  // namespace spillway::models
