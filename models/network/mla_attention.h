// LatentAttentionBlock: multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix C) as it
// is trained: keys and values are expanded from the latent and given to a fused kernel.
//
//   q    down, norm, up (or one product), rotary on rope_dim of each head           [t, a (n + r)]
//   c    down to kv_rank and the shared rotary key; norm of the former              [t, k], [t, r]
//   kv   up: keys without positions and values                                      [t, a (n + v)]
//   core keys assembled with the shared part, values copied out, flash attention    [t, a v]
//
// Tensor parallel, as in Megatron-Core's MLASelfAttention: queries, keys, values and what follows are split by heads.
// The bottlenecks are not: every rank computes them, with sequence parallelism for its part of the sequence. The shared
// key's gradient is summed over the ranks.
//
// With an indexer (models/network/sparse_index.h) the core is one under a window of as many keys.
//
// Without flash attention: scores, softmax, dropout and context as kernels of their own, over whole squares.
//
// Forward flops of the core: b a s^2 (n + r + v) under a causal mask; backward three products of width n + r and two
// of v. Kept with 2-byte activations, besides x:
//   2 t (2 q + (k + r) + k + 2 a (n + r) + 2 a v) bytes, 4 t for each norm and 4 a t of row sums.
// q counts before and after its norm, and is the rank when there is one; the rest are queries, keys, values and the
// result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/network/block_context.h"
#include "models/network/sparse_index.h"
#include "models/network/te_ops.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class LatentAttentionBlock {
 public:
  LatentAttentionBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model),
        setup_(context.rec.setup),
        options_(context.rec.options),
        context_(context),
        index_(model, context) {}

  // x [t, h], normalised, to the heads' results [t, a v]. `angles`: of rope_dim.
  Tensor run(const std::string& prefix, const Tensor& x, const Tensor& angles);

 private:
  Tensor linear(const std::string& name, const Tensor& x);
  Tensor up(const std::string& name, const Tensor& x);
  // `low`: gets their bottleneck, normed, where there is one.
  Tensor queries(const std::string& name, const Tensor& x, const Tensor& angles, Tensor& low);
  Tensor latent_norm(const std::string& name, const Tensor& down);
  Tensor shared_key(const std::string& name, const Tensor& down, const Tensor& angles);
  Tensor core(const std::string& name, const Tensor& q, const Tensor& expanded, const Tensor& key);
  std::vector<Tensor> assembled(const std::string& name, const Tensor& expanded, const Tensor& key,
                                const AttentionShape& shape);
  Tensor plain_core(const std::string& name, const Tensor& q, const std::vector<Tensor>& pair,
                    const AttentionShape& shape);
  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::temporary);
  // Megatron-core's on Transformer Engine. `expanded` has no body any more, but its node.
  struct EngineSaved {
    Tensor q, k, v, out, sums;
    // For recomputed up-projections: their inputs, what was kept of the norms' results, and the shared key's tensor.
    Tensor low, compressed, q_normed, kv_normed, key;
  };
  [[nodiscard]] std::int64_t window() const;
  [[nodiscard]] Flops core_flops(std::int64_t width) const;
  [[nodiscard]] bool has_engine() const;
  [[nodiscard]] bool gathers_key() const { return setup_.tensor_parallel > 1 && setup_.sequence_parallel; }
  [[nodiscard]] std::int64_t local_heads() const { return model_.heads / setup_.tensor_parallel; }
  void rotate_queries(const Tensor& q, const Tensor& angles);
  void assemble(const EngineSaved& saved, const Tensor& expanded, const Tensor& key, const Tensor& angles);
  Tensor engine_forward(const std::string& name, EngineSaved& saved);
  [[nodiscard]] AttentionShape engine_shape() const;
  Tensor wide_bottleneck(const std::string& name, const EngineSaved& saved);
  eager::NormedLinear normed(const std::string& name, const char* norm, const char* layer);
  Tensor key_gradient(const std::string& name, const Tensor& whole);
  void discard_projections(EngineSaved& saved);
  void project_again(const std::string& name, EngineSaved& saved, const Tensor& angles);
  Tensor engine_run(const std::string& prefix, const Tensor& x, const Tensor& angles);
  Tensor engine_core(const std::string& name, const Tensor& expanded, std::int64_t expanded_size, const Tensor& angles,
                     const std::shared_ptr<EngineSaved>& saved, const std::shared_ptr<Tensor>& slot);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const OpsOptions& options_;
  const BlockContext context_;
  SparseIndex index_;
};

}  // namespace spillway::models
