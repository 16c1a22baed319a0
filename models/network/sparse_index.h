// SparseIndex: the indexer of DeepSeek-V3.2-Exp (its report, section 2) in training. Light heads score every token
// before a token, index_weights summing up the heads; the softmax of latent attention sees the `keys` that score
// highest. It learns from what attention's own weights on those are, its input detached: only its weights get a
// gradient from it.
//
//   q, k, w    products of the queries' bottleneck and of x; k normed; rotary        [t, n d], [t, d], [t, n]
//   scores     n b s^2 d flops under a causal mask, written in fp32                  [t, s]
//   choice     the top keys of each row, with their scores, which are kept           [t, keys]
//   targets    backwards: attention's weights on the chosen, summed over heads (tensor parallel: and ranks)
//
// Sequences no longer than `keys` are attended to whole, and are scored all the same. Heads are not split over tensors:
// every rank scores all tokens, with sequence parallelism those of its part against gathered keys, and gathers the
// choice.
//
// The indexer of compressed keys (DeepSeek-V4) compresses its keys too. The indexer of keys that have heads
// (MiniMax-M3) makes its queries from x. It norms both, weighs no head, and chooses blocks by the best score in each.
//
// Deviations: whole scores are written, where a kernel may keep parts of them on chip. The time of a score's product is
// that of one with the contraction n d. Attention takes as long as under a window of as many keys, though each row has
// other keys.
#pragma once

#include <string>

#include "models/network/block_context.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class SparseIndex {
 public:
  SparseIndex(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), options_(context.rec.options), context_(context) {}

  // The chosen keys' scores; empty in a model without an indexer. `x` [t, h]; `low` [t, r], the queries' bottleneck,
  // normed; empty where they have none. With sequence parallelism both are this rank's part. `block`: the layer's.
  Tensor choose(const std::string& name, const Tensor& x, const Tensor& low, const Block& block = {});
  // Attention's result; its backward gives `scores`, unless they are empty, their gradient.
  Tensor learn(const std::string& name, Tensor result, const Tensor& scores);
  // Keys that a row sees at most of so many.
  [[nodiscard]] std::int64_t chosen_of(std::int64_t keys) const;

 private:
  // Choices that a row makes among keys for `compression` tokens each.
  [[nodiscard]] std::int64_t choices(std::int64_t compression) const;
  [[nodiscard]] bool is_split() const { return setup_.sequence_parallel && setup_.tensor_parallel > 1; }
  Tensor make(const std::string& name, DataType type, std::int64_t elements, TensorRole role = TensorRole::temporary);
  void product(std::string_view name, const GemmShape& shape, std::vector<Tensor> reads, std::vector<Tensor> writes);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const OpsOptions& options_;
  const BlockContext context_;
};

}  // namespace spillway::models
