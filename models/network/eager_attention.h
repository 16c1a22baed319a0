// Attention on a rank's heads: one kernel or four, with the sequence whole, in slices, or split over a context group.
#pragma once

#include <string>
#include <vector>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// Queries, keys and values: one packed tensor or three. One fused kernel; saves them, the result and the row
// statistics. `bias` [heads, sequence, sequence], if any, is added to the scores of every sequence and gets a gradient
// (memory-efficient attention of PyTorch and xFormers). Its reading is not in the kernel's time.
Tensor flash_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                       const AttentionShape& shape, const Tensor& bias = {});
// The same with the sequence split over the context group (ring attention, Liu et al. 2023): keys and values go
// round the ring while the part at hand is worked on, backwards with their gradients. The causal work is balanced:
// every rank does 1 / c of it in every turn. `shape`: of this rank's queries.
Tensor ring_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                      const AttentionShape& shape);
// The same as PyTorch's context_parallel has it, which torchtitan calls
// (torch/distributed/tensor/experimental/_attention.py at the end of 2024). Keys and values are repeated for every
// query head, and gathered while this rank's own are worked on. Elementwise kernels merge partial results in fp32,
// turn by turn. Backwards keys and values are gathered again. Their gradients go round in fp32 until they are home.
Tensor gathered_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv, AttentionShape shape);
// Keys and values of one layer and micro-batch, and their gradient, where the sequence comes in slices.
struct SlicedKeys {
  Tensor kept, gradient;
};
// The same of one slice of a causal sequence of `sequence` tokens, first tokens first; shape.keys counts its own and
// those before it. Each slice copies its keys and values to where all are, in one tensor that the first slice makes,
// and reads them there. Backwards, last slice first, gradients of keys are added up likewise; the first slice frees
// both. `keys` must outlive the graph.
Tensor flash_slice(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                   const AttentionShape& shape, std::int64_t sequence, SlicedKeys& keys);
// A copy in another layout, and one of its gradient backwards.
Tensor copied(EagerRecorder& rec, const std::string& name, const Tensor& x);
// flash_attention between the copies that Hugging Face's code makes (transformers 4.48 to 4.52,
// integrations/sdpa_attention.py). Queries and the result are copied to heads before the sequence, and back. Shared
// keys and values are repeated for every head. Backwards each gradient is copied. Three tensors.
Tensor copying_flash_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv,
                               AttentionShape shape);
// flash_attention on shared keys and values repeated for every head (transformers before 4.48).
Tensor repeating_flash_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv,
                                 AttentionShape shape);
// scores, softmax, dropout, context as four kernels; the whole square of scores whatever the mask. Saves queries,
// keys, values, the softmax and, with dropout, its mask and result. Shared keys and values are repeated first. Values
// may have a width of their own. `capped`: scores are c tanh(score / c); saves the tanh.
Tensor plain_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                       const AttentionShape& shape, double dropout, const Tensor& bias = {}, bool capped = false);
Tensor repeat_heads(EagerRecorder& rec, const std::string& name, const Tensor& x, const AttentionShape& shape);
std::vector<Tensor> join_gradients(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& inputs,
                                   std::vector<Tensor> gradients);

}  // namespace spillway::models::eager
