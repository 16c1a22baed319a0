// The operators transformers are made of, each with its forward kernels, what it saves and its backward kernels.
//
// Activations are [rows, width], rows = tokens. Flops are counted for matrix products and attention only (a
// multiply-add is two); other kernels have bytes alone. A backward does two products of the forward's size per linear
// layer (data and weight gradient); flash attention's backward does five where its forward does two.
#pragma once

#include <string>
#include <vector>

#include "models/autograd.h"
#include "models/eager_session.h"

namespace spillway {

class EagerOps {
 public:
  // `type`: of activations and weights.
  EagerOps(EagerSession& session, Autograd& autograd, DataType type)
      : session_(session), autograd_(autograd), type_(type) {}

  // rows of `table` picked by `ids`.
  Tensor embedding(const std::string& name, const Tensor& ids, TrainedParameter& table);
  // x [rows, in] times weight^T [in, out], plus bias when there is one. Saves x.
  Tensor linear(const std::string& name, const Tensor& x, TrainedParameter& weight, TrainedParameter* bias);
  // Over the last `weight` elements of each row. Saves x and the row statistics in fp32. `bias`: LayerNorm.
  Tensor norm(const std::string& name, const Tensor& x, TrainedParameter& weight, TrainedParameter* bias);
  // gelu, silu save x; relu, tanh save their result.
  enum class Pointwise : std::uint8_t { gelu, silu, relu, tanh };
  Tensor pointwise(const std::string& name, const Tensor& x, Pointwise function);
  Tensor multiply(const std::string& name, const Tensor& x, const Tensor& y);
  Tensor add(const std::string& name, const Tensor& x, const Tensor& y);
  // `part` repeats along the rows of x (positions of each sequence).
  Tensor add_broadcast(const std::string& name, const Tensor& x, const Tensor& part);
  // Saves a mask of one byte per element. probability 0: x itself.
  Tensor dropout(const std::string& name, const Tensor& x, double probability);
  // Rotary positions; `angles` is the table of cosines and sines. Saves nothing.
  Tensor rotary(const std::string& name, const Tensor& x, const Tensor& angles);
  // The same two as sequences of elementwise kernels. The norm saves x in fp32, a factor per row and the normalised x.
  Tensor unfused_rms_norm(const std::string& name, const Tensor& x, TrainedParameter& weight);
  Tensor unfused_rotary(const std::string& name, const Tensor& x, const Tensor& angles);
  // The first token of each sequence of `tokens`.
  Tensor first_tokens(const std::string& name, const Tensor& x, std::int64_t tokens);

  // Queries, keys and values: one packed tensor or three. One fused kernel; saves them, the result and the row
  // statistics.
  Tensor flash_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape);
  // scores, softmax, dropout, context as four kernels; the whole square of scores whatever the mask. Saves queries,
  // keys, values, the softmax and, with dropout, its mask and result. Shared keys and values are repeated first.
  Tensor plain_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                         double dropout);

  // Mean cross-entropy of logits [rows, classes] against labels, in fp32: a copy of the logits, the log-softmax
  // (saved), the loss; backwards their gradients.
  Tensor cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels);

 private:
  struct Core;  // what plain attention's backward needs
  struct NormSaved {
    Tensor wide, factor, narrow;
  };

  Tensor like(const std::string& name, const Tensor& x, TensorRole role = TensorRole::activation);
  Tensor make(const std::string& name, std::int64_t elements, TensorRole role = TensorRole::activation);
  Tensor gradient_of(const TrainedParameter& parameter);
  Tensor temporary(const std::string& name, DataType type, std::int64_t elements);
  Tensor cast(const std::string& name, const Tensor& x, DataType type);  // x itself when it has the type
  std::vector<Tensor> unfused_rms_norm_backward(const std::string& name, const NormSaved& saved, const Tensor& gradient,
                                                TrainedParameter& weight);
  // Bytes follow from the shape: an operand may be a part of a packed tensor. `bias`: added to them.
  void gemm(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write, Bytes bias = {});
  void linear_backward(const std::string& name, const Tensor& x, const Tensor& gradient, TrainedParameter& weight,
                       TrainedParameter* bias, Tensor* x_gradient);
  Tensor repeat_heads(const std::string& name, const Tensor& x, const AttentionShape& shape);
  std::vector<Tensor> join_gradients(const std::string& name, const std::vector<Tensor>& inputs,
                                     std::vector<Tensor> gradients);
  std::vector<Tensor> core_backward(const std::string& name, Core& core, Tensor gradient);

  EagerSession& session_;
  Autograd& autograd_;
  DataType type_;
};

}  // namespace spillway
