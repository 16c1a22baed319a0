// Transformer Engine's layers and Megatron-core's head and losses. They need EagerRecorder::workspaces.
#pragma once

#include <string>

#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

struct NormedLinear {
  std::string norm;
  TrainedParameter *norm_weight = nullptr, *norm_bias = nullptr;
  Linear linear;
};
// A norm and the layer behind it, split by outputs, as one function. Saves x, the norm's result (this rank's part of
// the sequence; in fp8 as weight gradients read it) and the statistics.
// `kept`: gives what is saved of the norm's result too.
Tensor norm_linear(EagerRecorder& rec, const NormedLinear& both, const Tensor& x, Tensor* kept = nullptr);
// Once more, into the same tensors.
void norm_linear_again(EagerRecorder& rec, const NormedLinear& both, const Tensor& x, const Tensor& kept,
                       const Tensor& out);
struct RotaryOptions {
  bool exchanges = false;      // over the context group, all to all
  bool recomputes = false;     // the kernel runs again before its backward, and what it gave isn't saved
  NormWeights q_norm, k_norm;  // of each head before it is rotated; saves queries and keys as they came, too
};
// The packed projections of all tensor ranks side by side. Each rank then takes its own queries and the one key head
// that it shares with others (Megatron-core 0.16, transformer/attention.py). Backwards what ranks share is summed.
Tensor gather_heads(EagerRecorder& rec, const std::string& name, const Tensor& mixed);
// Queries, keys and values in one tensor; queries and keys are rotated first. Saves all three apart, the result
// and the row statistics; not `mixed`.
Tensor rotary_attention(EagerRecorder& rec, const std::string& name, const Tensor& mixed, const Tensor& angles,
                        const AttentionShape& local, const RotaryOptions& options);
Tensor head(EagerRecorder& rec, const Linear& layer, const Tensor& x);
// Losses over a split vocabulary. In place: saves the logits, which become their gradient. With a copy: saves it, in
// fp32; `logits` go when the caller holds them no longer.
Tensor cross_entropy_in_place(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels);
Tensor cross_entropy_of_copy(EagerRecorder& rec, const std::string& name, Tensor logits, const Tensor& labels);

}  // namespace spillway::models::eager
