// Megatron-LM's fused kernels and its loss over a split vocabulary (megatron/core: fusions/fused_bias_gelu,
// fused_bias_dropout, fused_bias_swiglu; tensor_parallel/cross_entropy).
#include <utility>

#include "models/network/eager_fused.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {

Tensor bias_gelu(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& bias) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "bias_gelu", .reads = {x, bias.value}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, bias.trains, [&rec, name, x, &bias](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = "bias_gelu_backward", .reads = {gradient, x, bias.value}, .writes = {x_gradient}});
    sum_bias_gradient(rec, bias, x_gradient);
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor bias_dropout_add(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter* bias,
                        const Tensor& residual, double probability) {
  Tensor out = like(rec, name + ".out", x);
  Tensor mask;
  std::vector<Tensor> reads = {x, residual}, writes = {out};
  if (bias != nullptr) reads.push_back(bias->value);
  if (probability > 0)
    writes.push_back(mask = rec.session.empty(name + ".mask", DataType::byte, x.elements(), TensorRole::activation));
  rec.session.kernel({.name = "bias_dropout_add", .reads = std::move(reads), .writes = std::move(writes)});
  return rec.autograd.record(
      std::move(out), {x, residual}, bias != nullptr && bias->trains, [&rec, name, mask, bias](const Tensor& gradient) {
        Tensor x_gradient = gradient;
        if (mask) {
          x_gradient = like(rec, name + ".in.grad", gradient, TensorRole::temporary);
          rec.session.kernel({.name = "bias_dropout_add_backward", .reads = {gradient, mask}, .writes = {x_gradient}});
        }
        if (bias != nullptr) sum_bias_gradient(rec, *bias, x_gradient);
        return std::vector<Tensor>{std::move(x_gradient), gradient};
      });
}

Tensor swiglu(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor out = make(rec, name + ".out", x.elements() / 2);
  rec.session.kernel({.name = "swiglu", .reads = {x}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, x](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = "swiglu_backward", .reads = {gradient, x}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor compiled_gate(EagerRecorder& rec, const std::string& name, const Tensor& gate, const Tensor& up) {
  Tensor out = like(rec, name + ".out", gate);
  rec.session.kernel({.name = "compiled_gate", .reads = {gate, up}, .writes = {out}});
  return rec.autograd.record(std::move(out), {gate, up}, false, [&rec, name, gate, up](const Tensor& gradient) {
    Tensor gate_gradient = like(rec, name + ".gate.grad", gate, TensorRole::temporary);
    Tensor up_gradient = like(rec, name + ".up.grad", up, TensorRole::temporary);
    rec.session.kernel(
        {.name = "compiled_gate_backward", .reads = {gradient, gate, up}, .writes = {gate_gradient, up_gradient}});
    return std::vector<Tensor>{std::move(gate_gradient), std::move(up_gradient)};
  });
}

Tensor widened(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  return rec.autograd.record(cast(rec, name + ".fp32", x, DataType::fp32), {x}, false,
                             [](const Tensor& gradient) { return std::vector<Tensor>{gradient}; });
}

Tensor split_cross_entropy(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  const auto sum_over_ranks = [&rec](const Tensor& x) {
    if (rec.communication != nullptr) rec.communication->all_reduce(CommGroup::tensor, "all_reduce", {x});
  };
  const Bytes picked = labels.bytes() + Bytes(rows * 8);
  const Tensor softmax =
      rec.session.empty(name + ".softmax", DataType::fp32, logits.elements(), TensorRole::activation);
  {
    Tensor wide = cast(rec, name + ".logits_fp32", logits, DataType::fp32);
    const Tensor most = temporary(rec, name + ".row_max", DataType::fp32, rows);
    rec.session.kernel({.name = "row_max", .reads = {wide}, .writes = {most}});
    sum_over_ranks(most);
    rec.session.kernel({.name = "subtract_", .reads = {wide, most}, .writes = {wide}});
    const Tensor predicted = temporary(rec, name + ".predicted", DataType::fp32, rows);
    rec.session.kernel({.name = "pick", .reads = {wide, labels}, .writes = {predicted}, .bytes = picked});
    sum_over_ranks(predicted);
    rec.session.kernel({.name = "exp", .reads = {wide}, .writes = {softmax}});
  }
  const Tensor sums = temporary(rec, name + ".row_sum", DataType::fp32, rows);
  rec.session.kernel({.name = "row_sum", .reads = {softmax}, .writes = {sums}});
  sum_over_ranks(sums);
  rec.session.kernel({.name = "divide_", .reads = {softmax, sums}, .writes = {softmax}});
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  rec.session.kernel({.name = "log_mean", .reads = {sums}, .writes = {loss}});
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    rec.session.kernel({.name = "subtract_one_", .reads = {labels}, .writes = {softmax}, .bytes = picked});
    rec.session.kernel({.name = "scale_", .reads = {softmax, gradient}, .writes = {softmax}});
    return std::vector<Tensor>{cast(rec, name + ".logits.grad", softmax, rec.options.type)};
  });
}

}  // namespace spillway::models::eager
