// LinearAttentionBlock: the gated delta rule (Yang et al., arXiv:2412.06464, sections 3.2 and 3.3) as Qwen3-Next has it
// and flash-linear-attention's kernels train it, in chunks of c = 64 tokens.
//
//   mixed      queries, keys, values and gates: one product                                   [t, 2 K + 2 V]
//   decay      two numbers per head of values: how much of the state goes, how much of v comes [t, 2 a]
//   conv       causal, short, over q, k, v, with silu                                          [t, 2 K + V]
//   core       q and k repeated for the heads of values and normed; within chunks k k^T and the inverse of a
//              triangle [t, a, c]; states at chunks' borders [t / c, a, k, v]; results         [t, V]
//   norm       RMSNorm of each head's result, times silu of the gate                           [t, V]
//
// K = key_heads key_dim, V = value_heads value_dim, a = value_heads, all of this rank: heads are split over tensors.
//
// Kept with 2-byte activations besides x:
//   products      2 t (2 K + 2 V) + 4 a t
//   conv          2 t (2 K + V)
//   normed q, k   2 t (2 a k) + 8 a t
//   decays, beta  6 a t, in fp32
//   inverses      2 a c t
//   results       2 t V + 4 a t, with the norm's statistics
//   output's x    2 t V
// Flops forward, k and v of one head: a t (c (6 k + 4 v) + 6 k v). The backward computes the states again.
//
// Kimi Delta Attention (arXiv:2510.26692, section 3): a decay for each channel of the keys, and the norm's gate from a
// separate product, both through a bottleneck r. It keeps 2 t (K + V) bytes of these and 4 t r of their inputs more.
// Decays take 4 t K in place of 4 t a, the first product 2 t V less. One more product within chunks has 2 a t c k.
// Kimi K3's gate is one product: 2 t r less.
//
// Lightning attention (arXiv:2401.04658, section 3; MiniMax-01's modeling code): decays fixed by head and layer.
//   mixed      queries, keys and values: one product, then silu     [t, 3 V]
//   core       within blocks of 256 tokens q k^T v, between them the state, all in one kernel: results   [t, V]
//   norm       RMSNorm over all heads' results, times the sigmoid of a product of x                      [t, V]
// Kept besides x: products and silu 2 t 6 V, results 2 t V + 4 t, sigmoid, normed and the output's x 2 t 3 V. Flops
// forward, k of a head: a t (4 c k + 4 k k), c = 256; the backward two and a half times these. Rates are the delta
// rule's, assumed.
//
// Times: kernels that multiply take their traffic's or their products', whichever is longer, at rates fitted to
// published times of flash-linear-attention's kernels (docs/internals/operator-times.md); the others their traffic's.
// States go from chunk to chunk one after the other, which decides where batch times heads is small.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/network/block_context.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class LinearAttentionBlock {
 public:
  static constexpr std::int64_t chunk = 64;   // tokens
  static constexpr std::int64_t block = 256;  // of lightning attention

  LinearAttentionBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), options_(context.rec.options), context_(context) {}

  // x [t, h], normalised, to the heads' normed results [t, V].
  Tensor run(const std::string& prefix, const Tensor& x);

 private:
  Tensor run_fixed(const std::string& name, const Tensor& x);
  // Tensors of one layer, until its backward.
  struct Saved {
    Tensor mixed, decay, channels, gate;  // products; the last two where gates are by channel
    Tensor convolved, q, k, norms, gates, strengths, inverses, result, statistics;
  };
  struct States {
    Tensor w, u, states, fresh;  // operands of chunks, states at their borders, values less what the state knew
  };

  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::temporary);
  [[nodiscard]] std::int64_t key_heads() const { return model_.linear.key_heads / setup_.tensor_parallel; }
  [[nodiscard]] std::int64_t value_heads() const { return model_.linear.value_heads / setup_.tensor_parallel; }
  [[nodiscard]] std::int64_t decay_elements() const;
  [[nodiscard]] std::int64_t key_elements() const;    // of q, or of k, repeated for the heads of values
  [[nodiscard]] std::int64_t value_elements() const;  // of v
  // Products within chunks; `serial`: they hand states on.
  [[nodiscard]] ChunkWork forward_work(std::int64_t flops, bool serial = false) const;
  [[nodiscard]] ChunkWork backward_work(std::int64_t flops, bool serial = false) const;
  void make_operands(const std::string& name, Saved& saved);
  States make_states(const std::string& name, const Saved& saved);
  std::vector<Tensor> backward(const std::string& name, const Saved& saved, const Tensor& gradient);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const OpsOptions& options_;
  const BlockContext context_;
};

}  // namespace spillway::models
