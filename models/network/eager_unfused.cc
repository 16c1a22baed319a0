// RMSNorm, rotary embedding and GPT-2's GELU of EagerOps as sequences of elementwise kernels, the way Hugging Face's
// code runs without a compiler (transformers, modeling_llama.py: LlamaRMSNorm and apply_rotary_pos_emb; activations.py:
// NewGELUActivation).
#include <utility>

#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// Operands are spread over rows, or halves of wider ones.
const KernelCost strided = {.access = MemoryAccess::strided};

}  // namespace

Tensor EagerOps::temporary(const std::string& name, DataType type, std::int64_t elements) {
  return session_.empty(name, type, elements, TensorRole::temporary);
}

Tensor EagerOps::cast(const std::string& name, const Tensor& x, DataType type) {
  if (x.type() == type) return x;
  Tensor out = temporary(name, type, x.elements());
  const MemoryAccess access = size_of(type) > size_of(x.type()) ? MemoryAccess::strided : MemoryAccess::streamed;
  session_.kernel({.name = "cast", .reads = {x}, .writes = {out}, .cost = {.access = access}});
  return out;
}

// y = (wide(x) * rsqrt(mean(wide(x)^2) + eps)) narrowed, times the weight. Saves wide(x), the factor of each row and
// the narrowed product; x itself goes.
Tensor EagerOps::unfused_rms_norm(const std::string& name, const Tensor& x, TrainedParameter& weight) {
  const std::int64_t size = x.elements(), rows = size / weight.shape.rows;
  const Tensor wide = cast(name + ".wide", x, DataType::fp32);
  const Tensor factor = session_.empty(name + ".factor", DataType::fp32, rows, TensorRole::activation);
  {
    const Tensor squares = temporary(name + ".squares", DataType::fp32, size);
    session_.kernel({.name = "pow", .reads = {wide}, .writes = {squares}});
    session_.kernel({.name = "mean", .reads = {squares}, .writes = {factor}});
  }
  session_.kernel({.name = "add_", .reads = {factor}, .writes = {factor}});
  session_.kernel({.name = "rsqrt", .reads = {factor}, .writes = {factor}});
  Tensor product = temporary(name + ".product", DataType::fp32, size);
  session_.kernel({.name = "multiply", .reads = {wide, factor}, .writes = {product}, .cost = strided});
  const Tensor narrow = cast(name + ".narrow", product, x.type());
  product = {};
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "multiply", .reads = {narrow, weight.value}, .writes = {out}, .cost = strided});
  const Tensor normed = weight.trains ? narrow : Tensor();  // its gradient alone reads it
  return autograd_.record(std::move(out), {x}, weight.trains, [=, this, &weight](const Tensor& gradient) {
    return unfused_rms_norm_backward(name, {wide, factor, normed}, gradient, weight);
  });
}

std::vector<Tensor> EagerOps::unfused_rms_norm_backward(const std::string& name, const NormSaved& saved,
                                                        const Tensor& gradient, TrainedParameter& weight) {
  const std::int64_t size = gradient.elements();
  const auto wide_temporary = [&](const char* part) { return temporary(name + part, DataType::fp32, size); };
  Tensor inner = like(name + ".narrow.grad", gradient, TensorRole::temporary);
  session_.kernel({.name = "multiply", .reads = {gradient, weight.value}, .writes = {inner}, .cost = strided});
  if (weight.trains) {
    Tensor weight_gradient = gradient_of(weight);
    const Tensor product = like(name + ".weight.product", gradient, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, saved.narrow}, .writes = {product}});
    session_.kernel(
        {.name = "sum", .reads = {product}, .writes = {weight_gradient}, .cost = {.access = MemoryAccess::column_sum}});
    autograd_.accumulate(weight, std::move(weight_gradient));
  }
  inner = cast(name + ".product.grad", inner, DataType::fp32);
  const Tensor direct = wide_temporary(".wide.grad");
  session_.kernel({.name = "multiply", .reads = {inner, saved.factor}, .writes = {direct}, .cost = strided});
  const Tensor rows = temporary(name + ".factor.grad", DataType::fp32, saved.factor.elements());
  {
    const Tensor product = wide_temporary(".factor.product");
    session_.kernel({.name = "multiply", .reads = {inner, saved.wide}, .writes = {product}});
    session_.kernel({.name = "sum", .reads = {product}, .writes = {rows}});
  }
  inner = {};
  session_.kernel({.name = "rsqrt_backward", .reads = {rows, saved.factor}, .writes = {rows}});
  const Tensor spread = wide_temporary(".squares.grad");
  session_.kernel({.name = "mean_backward", .reads = {rows}, .writes = {spread}, .cost = strided});
  const Tensor slope = wide_temporary(".slope");
  session_.kernel({.name = "multiply", .reads = {saved.wide}, .writes = {slope}});
  session_.kernel({.name = "multiply", .reads = {spread, slope}, .writes = {slope}});
  session_.kernel({.name = "add_", .reads = {direct, slope}, .writes = {direct}});
  return {cast(name + ".in.grad", direct, gradient.type())};
}

// x cos + (second half negated, first half) sin. Saves nothing but the angles.
Tensor EagerOps::unfused_rotary(const std::string& name, const Tensor& x, const Tensor& angles) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "multiply", .reads = {x, angles}, .writes = {out}, .cost = strided});
  {
    const Tensor half = temporary(name + ".half", x.type(), x.elements() / 2);
    session_.kernel(
        {.name = "negate", .reads = {x}, .writes = {half}, .cost = strided, .bytes = half.bytes() + half.bytes()});
    const Tensor turned = temporary(name + ".turned", x.type(), x.elements());
    session_.kernel({.name = "concatenate",
                     .reads = {half, x},
                     .writes = {turned},
                     .cost = strided,
                     .bytes = turned.bytes() + turned.bytes()});
    session_.kernel({.name = "multiply", .reads = {turned, angles}, .writes = {turned}, .cost = strided});
    session_.kernel({.name = "add", .reads = {out, turned}, .writes = {out}, .cost = strided});
  }
  return autograd_.record(std::move(out), {x}, false, [=, this](const Tensor& gradient) {
    Tensor x_gradient = like(name + ".in.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, angles}, .writes = {x_gradient}, .cost = strided});
    const Tensor turned = like(name + ".turned.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, angles}, .writes = {turned}, .cost = strided});
    const Tensor half = temporary(name + ".half.grad", gradient.type(), gradient.elements() / 2);
    session_.kernel(
        {.name = "negate", .reads = {turned}, .writes = {half}, .cost = strided, .bytes = half.bytes() + half.bytes()});
    for (const Tensor& part : {half, turned}) {  // each half becomes a zero-filled whole, then they are added
      const Tensor whole = like(name + ".slice.grad", gradient, TensorRole::temporary);
      session_.kernel({.name = "fill_zero", .writes = {whole}});
      session_.kernel(
          {.name = "copy", .reads = {part}, .writes = {whole}, .cost = strided, .bytes = half.bytes() + half.bytes()});
      session_.kernel({.name = "add_", .reads = {x_gradient, whole}, .writes = {x_gradient}, .cost = strided});
    }
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

// 0.5 x (1 + tanh(c (x + 0.044715 x^3))), as transformers' NewGELUActivation writes it: x, its half, the tanh and what
// is one more are saved.
Tensor EagerOps::gelu_new(const std::string& name, const Tensor& x) {
  const Tensor half = scale(name + ".half", x);
  Tensor inner = cube(name + ".cube", x);
  inner = scale(name + ".small", inner);
  inner = add(name + ".sum", x, inner);
  inner = scale(name + ".scaled", inner);
  inner = pointwise(name + ".tanh", inner, Pointwise::tanh);
  const Tensor more = add_number(name + ".more", inner);
  inner = {};
  return multiply(name + ".product", half, more);
}

Tensor EagerOps::cube(const std::string& name, const Tensor& x) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "pow", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false, [this, name, x](const Tensor& gradient) {
    Tensor square = like(name + ".square", x, TensorRole::temporary);
    session_.kernel({.name = "pow", .reads = {x}, .writes = {square}});
    const Tensor slope = like(name + ".slope", x, TensorRole::temporary);
    session_.kernel({.name = "scale", .reads = {square}, .writes = {slope}});
    square = {};
    Tensor x_gradient = like(name + ".in.grad", x, TensorRole::temporary);
    session_.kernel({.name = "multiply", .reads = {gradient, slope}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor EagerOps::add_number(const std::string& name, const Tensor& x) {
  Tensor out = like(name + ".out", x);
  session_.kernel({.name = "add", .reads = {x}, .writes = {out}});
  return autograd_.record(std::move(out), {x}, false,
                          [](const Tensor& gradient) { return std::vector<Tensor>{gradient}; });
}

}  // namespace spillway::models
