#include "models/network/eager_ops.h"

#include <utility>

#include "base/input_error.h"

namespace spillway::models {
namespace {

// Of a norm's backward: the gradient of its input, the rest being that of its weights (an H100's LayerNorms of 768 to
// 1,280, docs/internals/operator-times.md).
constexpr double norm_input_share = 0.37;

}  // namespace

Tensor EagerOps::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return session_.empty(name, type_, elements, role);
}

Tensor EagerOps::like(const std::string& name, const Tensor& x, TensorRole role) {
  return session_.empty(name, x.type(), x.elements(), role);
}

Tensor EagerOps::gradient_of(const TrainedParameter& parameter) {
  const DataType type = options_.autocast ? parameter.type() : type_;
  return session_.empty(parameter.shape.name + ".grad", type, parameter.shape.elements(), TensorRole::gradient);
}

void EagerOps::gemm(std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write,
                    Bytes bias) {
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  const KernelCost cost{.kind = KernelClass::gemm,
                        .type = options_.product,
                        .gemm = shape,
                        .flops = Flops(2 * shape.m * shape.n * shape.k * shape.batch),
                        .before_cuda_12 = options_.before_cuda_12};
  session_.kernel({.name = kernel,
                   .reads = std::move(reads),
                   .writes = {std::move(write)},
                   .cost = cost,
                   .bytes = Bytes(elements * shape.batch * size_of(type_)) + bias});
}

Tensor EagerOps::embedding(const std::string& name, const Tensor& ids, TrainedParameter& table) {
  const DataType type = options_.autocast ? table.type() : type_;
  Tensor out = session_.empty(name + ".out", type, ids.elements() * table.shape.columns, TensorRole::activation);
  session_.kernel({.name = "embedding",
                   .reads = {ids, table.value},
                   .writes = {out},
                   .cost = {.memory = MemoryKind::gather},
                   .bytes = ids.bytes() + out.bytes() + out.bytes()});  // the rows picked, not the whole table
  return autograd_.record(std::move(out), {}, table.trains, [this, ids, &table](const Tensor& gradient) {
    Tensor whole = gradient_of(table);
    session_.kernel({.name = "fill_zero", .writes = {whole}});
    session_.kernel({.name = "embedding_backward",
                     .reads = {ids, gradient},
                     .writes = {whole},
                     .cost = {.memory = MemoryKind::gather},
                     .bytes = ids.bytes() + gradient.bytes() + gradient.bytes()});
    autograd_.accumulate(table, std::move(whole));
    return std::vector<Tensor>{};
  });
}

void EagerOps::norm_forward(const Tensor& x, const TrainedParameter& weight, const TrainedParameter* bias,
                            std::vector<Tensor> writes) {
  std::vector<Tensor> reads = {x, weight.value};
  if (bias != nullptr) reads.push_back(bias->value);
  session_.kernel({.name = bias != nullptr ? "layer_norm" : "rms_norm",
                   .reads = std::move(reads),
                   .writes = std::move(writes),
                   .cost = {.memory = MemoryKind::norm_forward}});
}

Tensor EagerOps::norm(const std::string& name, const Tensor& x, TrainedParameter& weight, TrainedParameter* bias) {
  const bool layer_norm = bias != nullptr;
  Tensor out = options_.narrow_norms ? make(name + ".out", x.elements()) : like(name + ".out", x);
  // Mean and reciprocal deviation of each row (RMSNorm: the latter alone).
  const Tensor statistics =
      session_.empty(name + ".statistics", DataType::fp32, x.elements() / weight.shape.rows * (layer_norm ? 2 : 1),
                     TensorRole::activation);
  norm_forward(x, weight, bias, {out, statistics});
  return autograd_.record(std::move(out), {x}, weight.trains,
                          [this, name, x, statistics, &weight, bias](const Tensor& gradient) {
                            return std::vector<Tensor>{norm_backward(name, x, statistics, {&weight, bias}, gradient)};
                          });
}

Tensor EagerOps::norm_backward(const std::string& name, const Tensor& x, const Tensor& statistics,
                               const NormWeights& weights, const Tensor& gradient, std::int64_t partial_rows) {
  const bool centred = weights.bias != nullptr;
  const Bytes whole = gradient.bytes() + x.bytes() + x.bytes();  // what norms are measured by: both kernels
  Tensor x_gradient;
  if (x.node() != 0) {
    x_gradient = like(name + ".in.grad", x, TensorRole::temporary);
    session_.kernel({.name = centred ? "layer_norm_backward" : "rms_norm_backward",
                     .reads = {gradient, x, statistics, weights.weight->value},
                     .writes = {x_gradient},
                     .cost = {.memory = MemoryKind::norm_backward, .whole = whole, .share = norm_input_share}});
  }
  if (!weights.weight->trains) return x_gradient;
  Tensor weight_gradient = gradient_of(*weights.weight), bias_gradient;
  std::vector<Tensor> sums = {weight_gradient};
  if (centred) sums.push_back(bias_gradient = gradient_of(*weights.bias));
  Tensor partial;
  if (partial_rows > 0)
    partial = temporary(name + ".partial_sums", DataType::fp32, weights.weight->shape.rows * partial_rows);
  session_.kernel({.name = centred ? "layer_norm_backward_weight" : "rms_norm_backward_weight",
                   .reads = {gradient, x, statistics},
                   .writes = std::move(sums),
                   .cost = {.memory = MemoryKind::norm_backward, .whole = whole, .share = 1 - norm_input_share}});
  partial = {};
  autograd_.accumulate(*weights.weight, std::move(weight_gradient));
  if (centred) autograd_.accumulate(*weights.bias, std::move(bias_gradient));
  return x_gradient;
}

Tensor EagerOps::pointwise(const std::string& name, const Tensor& x, Pointwise function) {
  static constexpr const char* forward[] = {"gelu", "silu", "relu", "tanh", "relu_squared"};
  static constexpr const char* backward[] = {"gelu_backward", "silu_backward", "relu_backward", "tanh_backward",
                                             "relu_squared_backward"};
  const auto index = static_cast<std::size_t>(function);
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = forward[index], .reads = {x}, .writes = {out}});
  const bool saves_result = function == Pointwise::relu || function == Pointwise::tanh;
  const Tensor saved = saves_result ? out : x;
  return autograd_.record(std::move(out), {x}, false, [this, name, saved, index](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", saved, TensorRole::temporary);
    session_.kernel({.name = backward[index], .reads = {gradient, saved}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::multiply(const std::string& name, const Tensor& x, const Tensor& y) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "multiply", .reads = {x, y}, .writes = {out}});
  return autograd_.record(std::move(out), {x, y}, false, [this, name, x, y](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".left.grad", x, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, y}, .writes = {x_gradient}});
    Tensor y_gradient = like(name + ".right.grad", y, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, x}, .writes = {y_gradient}});
    return std::vector<Tensor>{std::move(x_gradient), std::move(y_gradient)};
  });
}

Tensor EagerOps::add(const std::string& name, const Tensor& x, const Tensor& y) {
  const DataType of_x = x.type(), of_y = y.type();
  Tensor out = like(name + ".out", size_of(of_x) < size_of(of_y) ? y : x);
  session_.kernel({.name = "add", .reads = {x, y}, .writes = {out}});
  return autograd_.record(std::move(out), {x, y}, false, [this, name, of_x, of_y](const Tensor& gradient) {
    return std::vector<Tensor>{cast(name + ".left.grad", gradient, of_x), cast(name + ".right.grad", gradient, of_y)};
  });
}

Tensor EagerOps::scale(const std::string& name, const Tensor& x) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "scale", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, name](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "scale", .reads = {gradient}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::add_broadcast(const std::string& name, const Tensor& x, const Tensor& part) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "add", .reads = {x, part}, .writes = {out}});
  const std::int64_t size = part.node() != 0 ? part.elements() : 0;
  return autograd_.record(std::move(out), {x, part}, false, [this, name, size](const Tensor& gradient) {
    if (size == 0) return std::vector<Tensor>{gradient, {}};
    if (gradient.elements() == size) return std::vector<Tensor>{gradient, gradient};
    Tensor sum = make(name + ".part.grad", size, TensorRole::temporary);
    session_.kernel({.name = "sum", .reads = {gradient}, .writes = {sum}});
    return std::vector<Tensor>{gradient, std::move(sum)};
  });
}

Tensor EagerOps::dropout(const std::string& name, const Tensor& x, double probability) {
  if (probability == 0) return x;
  Tensor out = like(name + ".out", x);
  const Tensor mask = session_.empty(name + ".mask", DataType::byte, x.elements(), TensorRole::activation);
  session_.kernel({.name = "dropout", .reads = {x}, .writes = {out, mask}});
  return autograd_.record(std::move(out), {x}, false, [this, name, mask](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "dropout_backward", .reads = {gradient, mask}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::rotary(const std::string& name, const Tensor& x, const Tensor& angles) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "rotary", .reads = {x, angles}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, name, angles](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "rotary_backward", .reads = {gradient, angles}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::first_tokens(const std::string& name, const Tensor& x, std::int64_t tokens) {
  Tensor out = make(name + ".out", x.elements() / tokens);
  session_.kernel({.name = "copy", .reads = {x}, .writes = {out}, .bytes = out.bytes() + out.bytes()});
  const std::int64_t elements = x.elements();
  return autograd_.record(std::move(out), {x}, false, [this, name, elements](const Tensor& gradient) {
    Tensor whole = make(name + ".in.grad", elements, TensorRole::temporary);
    session_.kernel({.name = "fill_zero", .writes = {whole}});
    session_.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {whole}, .bytes = gradient.bytes() + gradient.bytes()});
    return std::vector<Tensor>{std::move(whole)};
  });
}

}  // namespace spillway::models
