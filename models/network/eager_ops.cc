#include "models/network/eager_ops.h"

#include <utility>

#include "base/input_error.h"

namespace spillway::models::eager {
namespace {

// Of a norm's backward: the gradient of its input, the rest being that of its weights (an H100's LayerNorms of 768 to
// 1,280, docs/internals/operator-times.md).
constexpr double norm_input_share = 0.37;

}  // namespace

Tensor make(EagerRecorder& rec, const std::string& name, std::int64_t elements, TensorRole role) {
  return rec.session.empty(name, rec.options.type, elements, role);
}

Tensor like(EagerRecorder& rec, const std::string& name, const Tensor& x, TensorRole role) {
  return rec.session.empty(name, x.type(), x.elements(), role);
}

Tensor temporary(EagerRecorder& rec, const std::string& name, DataType type, std::int64_t elements) {
  return rec.session.empty(name, type, elements, TensorRole::temporary);
}

Tensor cast(EagerRecorder& rec, const std::string& name, const Tensor& x, DataType type) {
  if (x.type() == type) return x;
  Tensor out = temporary(rec, name, type, x.elements());
  const MemoryAccess access = size_of(type) > size_of(x.type()) ? MemoryAccess::strided : MemoryAccess::streamed;
  rec.session.kernel({.name = "cast", .reads = {x}, .writes = {out}, .cost = {.access = access}});
  return out;
}

Tensor gradient_of(EagerRecorder& rec, const TrainedParameter& parameter) {
  const DataType type = rec.setup.has_wide_stream() ? parameter.type() : rec.options.type;
  return rec.session.empty(parameter.shape.name + ".grad", type, parameter.shape.elements(), TensorRole::gradient);
}

void gemm(EagerRecorder& rec, std::string_view kernel, const GemmShape& shape, std::vector<Tensor> reads, Tensor write,
          Bytes bias) {
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  const KernelCost cost{.kind = KernelClass::gemm,
                        .type = rec.options.product,
                        .gemm = shape,
                        .flops = Flops(2 * shape.m * shape.n * shape.k * shape.batch),
                        .before_cuda_12 = rec.options.before_cuda_12};
  rec.session.kernel({.name = kernel,
                      .reads = std::move(reads),
                      .writes = {std::move(write)},
                      .cost = cost,
                      .bytes = Bytes(elements * shape.batch * size_of(rec.options.type)) + bias});
}

Tensor embedding(EagerRecorder& rec, const std::string& name, const Tensor& ids, TrainedParameter& table) {
  const DataType type = rec.setup.has_wide_stream() ? table.type() : rec.options.type;
  Tensor out = rec.session.empty(name + ".out", type, ids.elements() * table.shape.columns, TensorRole::activation);
  rec.session.kernel({.name = "embedding",
                      .reads = {ids, table.value},
                      .writes = {out},
                      .cost = {.memory = MemoryKind::gather},
                      .bytes = ids.bytes() + out.bytes() + out.bytes()});  // the rows picked, not the whole table
  return rec.autograd.record(std::move(out), {}, table.trains, [&rec, ids, &table](const Tensor& gradient) {
    Tensor whole = gradient_of(rec, table);
    rec.session.kernel({.name = "fill_zero", .writes = {whole}});
    rec.session.kernel({.name = "embedding_backward",
                        .reads = {ids, gradient},
                        .writes = {whole},
                        .cost = {.memory = MemoryKind::gather},
                        .bytes = ids.bytes() + gradient.bytes() + gradient.bytes()});
    rec.autograd.accumulate(table, std::move(whole));
    return std::vector<Tensor>{};
  });
}

void norm_forward(EagerRecorder& rec, const Tensor& x, const TrainedParameter& weight, const TrainedParameter* bias,
                  std::vector<Tensor> writes) {
  std::vector<Tensor> reads = {x, weight.value};
  if (bias != nullptr) reads.push_back(bias->value);
  rec.session.kernel({.name = bias != nullptr ? "layer_norm" : "rms_norm",
                      .reads = std::move(reads),
                      .writes = std::move(writes),
                      .cost = {.memory = MemoryKind::norm_forward}});
}

Tensor norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight,
            TrainedParameter* bias) {
  const bool layer_norm = bias != nullptr;
  Tensor out = rec.options.narrow_norms ? make(rec, name + ".out", x.elements()) : like(rec, name + ".out", x);
  // Mean and reciprocal deviation of each row (RMSNorm: the latter alone).
  const Tensor statistics =
      rec.session.empty(name + ".statistics", DataType::fp32, x.elements() / weight.shape.rows * (layer_norm ? 2 : 1),
                        TensorRole::activation);
  norm_forward(rec, x, weight, bias, {out, statistics});
  return rec.autograd.record(
      std::move(out), {x}, weight.trains, [&rec, name, x, statistics, &weight, bias](const Tensor& gradient) {
        return std::vector<Tensor>{norm_backward(rec, name, x, statistics, {&weight, bias}, gradient)};
      });
}

Tensor bare_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t width, bool centred) {
  Tensor out = like(rec, name + ".out", x);
  const Tensor statistics = rec.session.empty(name + ".statistics", DataType::fp32,
                                              x.elements() / width * (centred ? 2 : 1), TensorRole::activation);
  rec.session.kernel({.name = centred ? "layer_norm" : "rms_norm",
                      .reads = {x},
                      .writes = {out, statistics},
                      .cost = {.memory = MemoryKind::norm_forward}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, x, statistics, centred](const Tensor& gradient) {
    Tensor back = like(rec, name + ".in.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = centred ? "layer_norm_backward" : "rms_norm_backward",
                        .reads = {gradient, x, statistics},
                        .writes = {back},
                        .cost = {.memory = MemoryKind::norm_backward}});
    return std::vector<Tensor>{std::move(back)};
  });
}

Tensor norm_backward(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& statistics,
                     const NormWeights& weights, const Tensor& gradient, std::int64_t partial_rows) {
  const bool centred = weights.bias != nullptr;
  const Bytes whole = gradient.bytes() + x.bytes() + x.bytes();  // what norms are measured by: both kernels
  Tensor x_gradient;
  if (x.node() != 0) {
    x_gradient = like(rec, name + ".in.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = centred ? "layer_norm_backward" : "rms_norm_backward",
                        .reads = {gradient, x, statistics, weights.weight->value},
                        .writes = {x_gradient},
                        .cost = {.memory = MemoryKind::norm_backward, .whole = whole, .share = norm_input_share}});
  }
  if (!weights.weight->trains) return x_gradient;
  Tensor weight_gradient = gradient_of(rec, *weights.weight), bias_gradient;
  std::vector<Tensor> sums = {weight_gradient};
  if (centred) sums.push_back(bias_gradient = gradient_of(rec, *weights.bias));
  Tensor partial;
  if (partial_rows > 0)
    partial = temporary(rec, name + ".partial_sums", DataType::fp32, weights.weight->shape.rows * partial_rows);
  rec.session.kernel({.name = centred ? "layer_norm_backward_weight" : "rms_norm_backward_weight",
                      .reads = {gradient, x, statistics},
                      .writes = std::move(sums),
                      .cost = {.memory = MemoryKind::norm_backward, .whole = whole, .share = 1 - norm_input_share}});
  partial = {};
  rec.autograd.accumulate(*weights.weight, std::move(weight_gradient));
  if (centred) rec.autograd.accumulate(*weights.bias, std::move(bias_gradient));
  return x_gradient;
}

Tensor pointwise(EagerRecorder& rec, const std::string& name, const Tensor& x, Pointwise function) {
  static constexpr const char* forward[] = {"gelu", "silu", "relu", "tanh", "relu_squared"};
  static constexpr const char* backward[] = {"gelu_backward", "silu_backward", "relu_backward", "tanh_backward",
                                             "relu_squared_backward"};
  const auto index = static_cast<std::size_t>(function);
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = forward[index], .reads = {x}, .writes = {out}});
  const bool saves_result = function == Pointwise::relu || function == Pointwise::tanh;
  const Tensor saved = saves_result ? out : x;
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, saved, index](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", saved, TensorRole::temporary);
    rec.session.kernel({.name = backward[index], .reads = {gradient, saved}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor multiply(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& y) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "multiply", .reads = {x, y}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x, y}, false, [&rec, name, x, y](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".left.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, y}, .writes = {x_gradient}});
    Tensor y_gradient = like(rec, name + ".right.grad", y, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, x}, .writes = {y_gradient}});
    return std::vector<Tensor>{std::move(x_gradient), std::move(y_gradient)};
  });
}

Tensor gated(EagerRecorder& rec, const std::string& name, const Tensor& result, const Tensor& gate) {
  const Tensor share = rec.session.empty(name + ".share", gate.type(), gate.elements(), TensorRole::activation);
  rec.session.kernel({.name = "sigmoid", .reads = {gate}, .writes = {share}});
  const Tensor shares = rec.autograd.record(share, {gate}, false, [&rec, name, share](const Tensor& gradient) {
    Tensor back = rec.session.empty(name + ".gate.grad", share.type(), share.elements(), TensorRole::temporary);
    rec.session.kernel({.name = "sigmoid_backward", .reads = {gradient, share}, .writes = {back}});
    return std::vector<Tensor>{std::move(back)};
  });
  return multiply(rec, name, result, shares);
}

Tensor add(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& y) {
  const DataType of_x = x.type(), of_y = y.type();
  Tensor out = like(rec, name + ".out", size_of(of_x) < size_of(of_y) ? y : x);
  rec.session.kernel({.name = "add", .reads = {x, y}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x, y}, false, [&rec, name, of_x, of_y](const Tensor& gradient) {
    return std::vector<Tensor>{cast(rec, name + ".left.grad", gradient, of_x),
                               cast(rec, name + ".right.grad", gradient, of_y)};
  });
}

Tensor scale(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "scale", .reads = {x}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "scale", .reads = {gradient}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor add_broadcast(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& part) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "add", .reads = {x, part}, .writes = {out}});
  const std::int64_t size = part.node() != 0 ? part.elements() : 0;
  return rec.autograd.record(std::move(out), {x, part}, false, [&rec, name, size](const Tensor& gradient) {
    if (size == 0) return std::vector<Tensor>{gradient, {}};
    if (gradient.elements() == size) return std::vector<Tensor>{gradient, gradient};
    Tensor sum = make(rec, name + ".part.grad", size, TensorRole::temporary);
    rec.session.kernel({.name = "sum", .reads = {gradient}, .writes = {sum}});
    return std::vector<Tensor>{gradient, std::move(sum)};
  });
}

Tensor dropout(EagerRecorder& rec, const std::string& name, const Tensor& x, double probability) {
  if (probability == 0) return x;
  Tensor out = like(rec, name + ".out", x);
  const Tensor mask = rec.session.empty(name + ".mask", DataType::byte, x.elements(), TensorRole::activation);
  rec.session.kernel({.name = "dropout", .reads = {x}, .writes = {out, mask}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, mask](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "dropout_backward", .reads = {gradient, mask}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor rotary(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& angles) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "rotary", .reads = {x, angles}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, angles](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "rotary_backward", .reads = {gradient, angles}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor first_tokens(EagerRecorder& rec, const std::string& name, const Tensor& x, std::int64_t tokens) {
  Tensor out = make(rec, name + ".out", x.elements() / tokens);
  rec.session.kernel({.name = "copy", .reads = {x}, .writes = {out}, .bytes = out.bytes() + out.bytes()});
  const std::int64_t elements = x.elements();
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, elements](const Tensor& gradient) {
    Tensor whole = make(rec, name + ".in.grad", elements, TensorRole::temporary);
    rec.session.kernel({.name = "fill_zero", .writes = {whole}});
    rec.session.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {whole}, .bytes = gradient.bytes() + gradient.bytes()});
    return std::vector<Tensor>{std::move(whole)};
  });
}

}  // namespace spillway::models::eager
