// CompressedAttentionBlock: attention of DeepSeek-V4.
//
// Source: transformers, deepseek_v4/modeling_deepseek_v4.py. The a heads of width d share one key, which is the value
// too. A row sees a window of keys, and keys that stand for m tokens each (models/network/compressed_keys.h). An
// indexer chooses among these in some layers.
//
//   q      down to r, norm, up, a norm without weights of each head, rotated          [t, a d]
//   kv     one product, norm, rotated                                                 [t, d]
//   keys   compressed, where the layer has them                                       [t / m, d]
//   core   flash attention with a number per head beside the scores                   [t, a d]
//   out    rotated back; a product within each of g groups of heads                   [t, g o]
//
// Pairs:
//
//   window        w (2 s - w) / 2
//   compressed    s^2 / 2 m
//   k of them     k s - k^2 m / 2, where there are more than k
//
// The core takes 4 a d flops a pair forwards, and 2.5 times that backwards.
//
// Kept with 2-byte activations besides x, in bytes:
//
//   bottleneck    4 t r, and 4 t of its norm
//   queries       4 t a d, and 4 t a of their norm
//   key           4 t d, and 4 t of its norm
//   results       4 t a d, and 4 t a of row sums
//   groups        2 t g o
//   compressed    2 t d / m that the core reads, and what their file says
//
// Deviations: the core takes as long as under a window of as many pairs. Chosen keys are not gathered apart.
#pragma once

#include <string>

#include "models/network/block_context.h"
#include "models/network/sparse_index.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class CompressedAttentionBlock {
 public:
  CompressedAttentionBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), context_(context), index_(model, context) {}

  // x [t, h], normalised, to what the output projection reads [t, g o]. `angles`: of rope_dim.
  Tensor run(const std::string& prefix, const Block& block, const Tensor& x, const Tensor& angles);

 private:
  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::temporary);
  Tensor core(const std::string& name, const Block& block, const std::vector<Tensor>& inputs);
  Tensor grouped(const std::string& name, const Tensor& x);
  // Pairs of query and key in a sequence.
  [[nodiscard]] std::int64_t pairs(const Block& block) const;

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const BlockContext context_;
  SparseIndex index_;
};

}  // namespace spillway::models
