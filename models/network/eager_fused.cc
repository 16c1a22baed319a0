// Megatron-LM's fused kernels and its loss over a split vocabulary (megatron/core: fusions/fused_bias_gelu,
// fused_bias_dropout, fused_bias_swiglu; tensor_parallel/cross_entropy).
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {

Tensor EagerOps::bias_gelu(const std::string& name, const Tensor& x, TrainedParameter& bias) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "bias_gelu", .reads = {x, bias.value}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, bias.trains, [this, name, x, &bias](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", x, TensorRole::temporary);
    session_.kernel({.name = "bias_gelu_backward", .reads = {gradient, x, bias.value}, .writes = {x_gradient}});
    sum_bias_gradient(bias, x_gradient);
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::bias_dropout_add(const std::string& name, const Tensor& x, TrainedParameter* bias,
                                  const Tensor& residual, double probability) {
  Tensor out = like(name + ".out", x);
  Tensor mask;
  std::vector<Tensor> reads = {x, residual}, writes = {out};
  if (bias != nullptr) reads.push_back(bias->value);
  if (probability > 0)
    writes.push_back(mask = session_.empty(name + ".mask", DataType::byte, x.elements(), TensorRole::activation));
  session_.kernel({.name = "bias_dropout_add", .reads = std::move(reads), .writes = std::move(writes)});
  return autograd_.record(
      std::move(out), {x, residual}, bias != nullptr && bias->trains, [this, name, mask, bias](const Tensor& gradient) {
        Tensor x_gradient = gradient;
        if (mask) {
          x_gradient = like(name + ".in.grad", gradient, TensorRole::temporary);
          session_.kernel({.name = "bias_dropout_add_backward", .reads = {gradient, mask}, .writes = {x_gradient}});
        }
        if (bias != nullptr) sum_bias_gradient(*bias, x_gradient);
        return std::vector<Tensor>{std::move(x_gradient), gradient};
      });
}

Tensor EagerOps::swiglu(const std::string& name, const Tensor& x) {
  Tensor out = make(name + ".out", x.elements() / 2);
  session_.kernel({.name = "swiglu", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, name, x](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", x, TensorRole::temporary);
    session_.kernel({.name = "swiglu_backward", .reads = {gradient, x}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::compiled_gate(const std::string& name, const Tensor& gate, const Tensor& up) {
  Tensor out = like(name + ".out", gate);
  session_.kernel({.name = "compiled_gate", .reads = {gate, up}, .writes = {out}});
  return autograd_.record(std::move(out), {gate, up}, false, [this, name, gate, up](const Tensor& gradient) {
    Tensor gate_gradient = like(name + ".gate.grad", gate, TensorRole::temporary);
    Tensor up_gradient = like(name + ".up.grad", up, TensorRole::temporary);
    session_.kernel(
        {.name = "compiled_gate_backward", .reads = {gradient, gate, up}, .writes = {gate_gradient, up_gradient}});
    return std::vector<Tensor>{std::move(gate_gradient), std::move(up_gradient)};
  });
}

Tensor EagerOps::widened(const std::string& name, const Tensor& x) {
  return autograd_.record(cast(name + ".fp32", x, DataType::fp32), {x}, false,
                          [](const Tensor& gradient) { return std::vector<Tensor>{gradient}; });
}

Tensor EagerOps::split_cross_entropy(const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  const auto sum_over_ranks = [this](const Tensor& x) {
    if (communication_ != nullptr) communication_->all_reduce(CommGroup::tensor, "all_reduce", {x});
  };
  const Bytes picked = labels.bytes() + Bytes(rows * 8);
  const Tensor softmax = session_.empty(name + ".softmax", DataType::fp32, logits.elements(), TensorRole::activation);
  {
    Tensor wide = cast(name + ".logits_fp32", logits, DataType::fp32);
    const Tensor most = temporary(name + ".row_max", DataType::fp32, rows);
    session_.kernel({.name = "row_max", .reads = {wide}, .writes = {most}});
    sum_over_ranks(most);
    session_.kernel({.name = "subtract_", .reads = {wide, most}, .writes = {wide}});
    const Tensor predicted = temporary(name + ".predicted", DataType::fp32, rows);
    session_.kernel({.name = "pick", .reads = {wide, labels}, .writes = {predicted}, .bytes = picked});
    sum_over_ranks(predicted);
    session_.kernel({.name = "exp", .reads = {wide}, .writes = {softmax}});
  }
  const Tensor sums = temporary(name + ".row_sum", DataType::fp32, rows);
  session_.kernel({.name = "row_sum", .reads = {softmax}, .writes = {sums}});
  sum_over_ranks(sums);
  session_.kernel({.name = "divide_", .reads = {softmax, sums}, .writes = {softmax}});
  Tensor loss = session_.empty(name, DataType::fp32, 1, TensorRole::activation);
  session_.kernel({.name = "log_mean", .reads = {sums}, .writes = {loss}});
  return autograd_.record(std::move(loss), {logits}, false, [=, this](const Tensor& gradient) {
    session_.kernel({.name = "subtract_one_", .reads = {labels}, .writes = {softmax}, .bytes = picked});
    session_.kernel({.name = "scale_", .reads = {softmax, gradient}, .writes = {softmax}});
    return std::vector<Tensor>{cast(name + ".logits.grad", softmax, type_)};
  });
}

}  // namespace spillway::models
