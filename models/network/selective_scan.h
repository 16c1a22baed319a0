// SelectiveScanBlock: the first Mamba's mixer (Gu and Dao, arXiv:2312.00752, section 3) as state-spaces/mamba's fused
// scan trains it (mamba_ssm/ops/selective_scan_interface.py, selective_scan_fn) and transformers' Jamba calls it
// (modeling_jamba.py, cuda_kernels_forward).
//
//   in     values and gate: one product                                    [t, 2 d]
//   conv   causal, short, over the values, with silu                       [t, d]
//   enter  a bottleneck of steps, inputs and outputs of the states         [t, r + 2 n]
//   norms  of each of the three (Jamba); else copies of them
//   step   out of the bottleneck: each channel's step of time              [t, d]
//   scan   each channel's n states from token to token, the result gated   [t, d]
//   out    d to h
//
// Kept with 2-byte activations besides x: 4 t d of the first product, 2 t d of the convolution, 2 t (r + 2 n) of the
// bottleneck. The norms' results are as many, with 12 t of statistics. Steps, results and these before the gate take
// 2 t d each. The states take 8 d n bytes for every 2,048 tokens of a sequence.
//
// Flops beside the products: t d (2 k + 9 n), k the convolution's tokens; backward 4 k and 18 n. A state takes an
// exponential a token each way. A multiprocessor makes 16 a clock (CUDA C++ Programming Guide, arithmetic
// instructions). The scan's time is theirs or its traffic's. No published time of it was compared. Ranks of tensors or
// contexts would hand states on: refused. Deviation: mamba_inner_fn, which models without these norms call, makes the
// convolution, the steps and the gated result again in the backward. Here they are kept: peaks are too high.
#pragma once

#include <string>
#include <vector>

#include "models/network/block_context.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

class SelectiveScanBlock {
 public:
  static constexpr std::int64_t chunk = 2048;  // tokens between kept states

  SelectiveScanBlock(const ModelSpec& model, const BlockContext& context)
      : model_(model), setup_(context.rec.setup), context_(context) {}

  // x [t, h], normalised, to what the last product reads [t, d].
  Tensor run(const std::string& prefix, const Tensor& x);

 private:
  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::activation);
  Tensor sum_for(TrainedParameter& parameter);
  Tensor convolve(const std::string& name, const Tensor& projected);
  // One of the bottleneck's three parts, `columns` wide.
  Tensor part(const std::string& name, const Tensor& entered, std::int64_t columns);
  struct Operands {
    Tensor values, steps, inputs, outputs, projected;
  };
  Tensor scan(const std::string& name, const Operands& of);

  const ModelSpec& model_;
  const TrainingSetup& setup_;
  const BlockContext context_;
};

}  // namespace spillway::models
