// The gated short convolution that LFM2 has in place of attention (Liquid AI 2025; transformers, modeling_lfm2.py).
//
//   in     two gates b, c and values v: one product   [t, 3 h]
//   first  b v                                        [t, h]
//   conv   causal, a few tokens, channel by channel   [t, h]
//   second c times that                               [t, h]
//   out    h to h
//
// Kept with 2-byte activations besides x: 2 t (3 h + h + h), and 2 t h that the last product reads. Flops beside the
// products: 2 t h k, k the convolution's tokens, twice that backwards. Heads there are none: tensor ranks split h.
#pragma once

#include <string>
#include <utility>

#include "models/network/block_context.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

class ShortConvolutionBlock {
 public:
  ShortConvolutionBlock(const ModelSpec& model, const BlockContext& context) : model_(model), context_(context) {}

  // x [t, h], normalised, to what the last product reads.
  Tensor run(const std::string& prefix, const Tensor& x);

 private:
  Tensor backward(const std::string& name, const Tensor& all, const Tensor& gated, const Tensor& convolved,
                  const Tensor& gradient);

  const ModelSpec& model_;
  const BlockContext context_;
};

}  // namespace spillway::models
