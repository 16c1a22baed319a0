// The operators transformers are made of, each with its forward kernels, what it saves and its backward kernels.
//
// Activations are [rows, width], rows = tokens. Flops are counted for matrix products and attention only (a
// multiply-add is two); other kernels have bytes alone. A backward does two products of the forward's size per linear
// layer (data and weight gradient); flash attention's backward does five where its forward does two.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// rows of `table` picked by `ids`.
Tensor embedding(EagerRecorder& rec, const std::string& name, const Tensor& ids, TrainedParameter& table);
// Over the last `weight` elements of each row. Saves x and the row statistics in fp32. `bias`: LayerNorm.
Tensor norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight,
            TrainedParameter* bias);
// Without weights, over each `width` elements. `centred`: LayerNorm.
Tensor bare_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t width, bool centred);
// Its forward kernel alone.
void norm_forward(EagerRecorder& rec, const Tensor& x, const TrainedParameter& weight, const TrainedParameter* bias,
                  std::vector<Tensor> writes);
// RMSNorm over rows of which each rank of the tensor group has a part, as it has of the weight.
Tensor split_rms_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight);
// gelu, silu, relu_squared save x; relu, tanh save their result.
enum class Pointwise : std::uint8_t { gelu, silu, relu, tanh, relu_squared };
Tensor pointwise(EagerRecorder& rec, const std::string& name, const Tensor& x, Pointwise function);
Tensor multiply(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& y);
// result * sigmoid(gate), as two kernels; the sigmoid is kept.
Tensor gated(EagerRecorder& rec, const std::string& name, const Tensor& result, const Tensor& gate);
Tensor add(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& y);
// By a constant. Saves nothing.
Tensor scale(EagerRecorder& rec, const std::string& name, const Tensor& x);
// `part` repeats along the rows of x (positions of each sequence).
Tensor add_broadcast(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& part);
// Saves a mask of one byte per element. probability 0: x itself.
Tensor dropout(EagerRecorder& rec, const std::string& name, const Tensor& x, double probability);
// Rotary positions; `angles` is the table of cosines and sines. Saves nothing.
Tensor rotary(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& angles);
// The first token of each sequence of `tokens`.
Tensor first_tokens(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t tokens);
struct NormWeights {
  TrainedParameter *weight = nullptr, *bias = nullptr;
};
Tensor like(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role = TensorRole::activation);
Tensor make(EagerRecorder& rec, const std::string& name, std::int64_t elements,
            TensorRole role = TensorRole::activation);
Tensor gradient_of(EagerRecorder& rec, const TrainedParameter& parameter);
Tensor temporary(EagerRecorder& rec, const std::string& name, DataType type, std::int64_t elements);
// x itself when it has the type.
Tensor cast(EagerRecorder& rec, const std::string& name, const Tensor& x, DataType type);
// Bytes follow from the shape: an operand may be a part of a packed tensor. `bias`: added to them.
void gemm(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write,
          Bytes bias = {});
// Gradient of x, null where it has none; those of the weight and the bias are accumulated. `partial_rows`: of sums
// that the weight's gradient is added up from, beside it.
Tensor norm_backward(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& statistics,
                     const NormWeights& weights, const Tensor& gradient, std::int64_t partial_rows = 0);

}  // namespace spillway::models::eager
