// MambaBlock: Mamba-2's mixer (Dao and Gu, arXiv:2405.21060, section 6) as the fused training kernel of
// state-spaces/mamba runs it (ops/triton/ssd_combined.py, mamba_split_conv1d_scan_combined), in chunks of q tokens.
//
//   in     gate, values, inputs and outputs of the states, steps of time: one product    [t, 2 d + 2 g n + a]
//   conv   causal, short, over values, inputs and outputs, with silu                     [t, d + 2 g n]
//   core   steps of time and their sums in fp32 [t, a]; states at chunks' ends in fp32 [t / q, a, p, n], handed from
//          chunk to chunk; products of inputs and outputs within chunks [t, g, q]; results [t, d]
//   norm   RMSNorm over each group's results, times silu of the gate                     [t, d]
//   out    d to h
//
// a heads of width p, d = a p, states n wide, g groups, all of this rank: heads and groups are split over tensors.
//
// Kept with 2-byte activations besides x: 2 t (2 d + 2 g n + a) of the first product, 2 t d of the core's results, with
// a norm 4 t g of its statistics. The backward computes the convolution and the states again. If the last product is a
// part of the kernel (one tensor rank, not Megatron-LM), its input too, else 2 t d more.
//
// Flops beside the products, k the convolution's tokens:
//   forward   t (2 k (d + 2 g n) + 2 q (g n + d) + 4 d n)
//   backward  t (4 k (d + 2 g n) + 4 q g n + 4 q d + 8 d n), and those of the first three kernels again
//
// Times: kernels that multiply take their traffic's or their products', whichever is longer, at rates read off
// published times of these kernels (docs/internals/operator-times.md); the others their traffic's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/network/block_context.h"
#include "models/network/eager_linear.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class MambaBlock {
 public:
  MambaBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), options_(context.rec.options), context_(context) {}

  // x [t, h], normalised, to the result of the last product [t, h].
  Tensor run(const std::string& prefix, const Tensor& x);
  // The same behind the first product.
  Tensor run_projected(const std::string& prefix, const Tensor& projected);

 private:
  // Tensors of one layer, until its backward.
  struct Saved {
    Tensor projected, result, statistics;
  };
  // The core's parts of the first product, forwards and once more backwards.
  struct Operands {
    Tensor convolved, steps, states, products;
  };

  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::temporary);
  [[nodiscard]] std::int64_t tokens() const { return setup_.tokens(); }
  [[nodiscard]] std::int64_t split(std::int64_t whole) const { return whole / setup_.tensor_parallel; }
  [[nodiscard]] std::int64_t width() const { return split(model_.mamba.width()); }
  [[nodiscard]] std::int64_t inputs() const { return split(model_.mamba.groups * model_.mamba.state); }
  [[nodiscard]] std::int64_t convolved() const { return width() + 2 * inputs(); }
  [[nodiscard]] bool has_fused_output() const { return setup_.tensor_parallel == 1 && !setup_.traits().megatron; }
  [[nodiscard]] eager::Linear layer(const std::string& of);
  Tensor sum_for(TrainedParameter& parameter);
  // `again`: "" or what tells its tensors from the forward's.
  Operands make_operands(const std::string& name, const std::string& again, const Saved& saved);
  void norm(const std::string& name, const Saved& saved, const Tensor& out);
  Tensor without_normed(const std::string& name, const std::shared_ptr<Saved>& saved, const Tensor& normed,
                        const Tensor& out);
  Tensor backward(const std::string& name, const Saved& saved, const Tensor& gradient);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const OpsOptions& options_;
  const BlockContext context_;
};

}  // namespace spillway::models
