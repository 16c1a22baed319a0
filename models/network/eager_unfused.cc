// RMSNorm, rotary embedding and GPT-2's GELU as sequences of elementwise kernels, the way Hugging Face's
// code runs without a compiler (transformers, modeling_llama.py: LlamaRMSNorm and apply_rotary_pos_emb; activations.py:
// NewGELUActivation).
#include <utility>

#include "models/network/eager_ops.h"
#include "models/network/eager_unfused.h"

namespace spillway::models::eager {
namespace {

// Operands are spread over rows, or halves of wider ones.
const KernelCost strided = {.access = MemoryAccess::strided};

struct NormSaved {
  Tensor wide, factor, narrow;
};

std::vector<Tensor> unfused_rms_norm_backward(EagerRecorder& rec, const std::string& name, const NormSaved& saved,
                                              const Tensor& gradient, TrainedParameter& weight) {
  const std::int64_t size = gradient.elements();
  const auto wide_temporary = [&](const char* part) { return temporary(rec, name + part, DataType::fp32, size); };
  Tensor inner = like(rec, name + ".narrow.grad", gradient, TensorRole::temporary);
  rec.session.kernel({.name = "multiply", .reads = {gradient, weight.value}, .writes = {inner}, .cost = strided});
  if (weight.trains) {
    Tensor weight_gradient = gradient_of(rec, weight);
    const Tensor product = like(rec, name + ".weight.product", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, saved.narrow}, .writes = {product}});
    rec.session.kernel(
        {.name = "sum", .reads = {product}, .writes = {weight_gradient}, .cost = {.access = MemoryAccess::column_sum}});
    rec.autograd.accumulate(weight, std::move(weight_gradient));
  }
  inner = cast(rec, name + ".product.grad", inner, DataType::fp32);
  const Tensor direct = wide_temporary(".wide.grad");
  rec.session.kernel({.name = "multiply", .reads = {inner, saved.factor}, .writes = {direct}, .cost = strided});
  const Tensor rows = temporary(rec, name + ".factor.grad", DataType::fp32, saved.factor.elements());
  {
    const Tensor product = wide_temporary(".factor.product");
    rec.session.kernel({.name = "multiply", .reads = {inner, saved.wide}, .writes = {product}});
    rec.session.kernel({.name = "sum", .reads = {product}, .writes = {rows}});
  }
  inner = {};
  rec.session.kernel({.name = "rsqrt_backward", .reads = {rows, saved.factor}, .writes = {rows}});
  const Tensor spread = wide_temporary(".squares.grad");
  rec.session.kernel({.name = "mean_backward", .reads = {rows}, .writes = {spread}, .cost = strided});
  const Tensor slope = wide_temporary(".slope");
  rec.session.kernel({.name = "multiply", .reads = {saved.wide}, .writes = {slope}});
  rec.session.kernel({.name = "multiply", .reads = {spread, slope}, .writes = {slope}});
  rec.session.kernel({.name = "add_", .reads = {direct, slope}, .writes = {direct}});
  return {cast(rec, name + ".in.grad", direct, gradient.type())};
}

Tensor cube(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "pow", .reads = {x}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, x](const Tensor& gradient) {
    Tensor square = like(rec, name + ".square", x, TensorRole::temporary);
    rec.session.kernel({.name = "pow", .reads = {x}, .writes = {square}});
    const Tensor slope = like(rec, name + ".slope", x, TensorRole::temporary);
    rec.session.kernel({.name = "scale", .reads = {square}, .writes = {slope}});
    square = {};
    Tensor x_gradient = like(rec, name + ".in.grad", x, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, slope}, .writes = {x_gradient}});
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

Tensor add_number(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "add", .reads = {x}, .writes = {out}});
  return rec.autograd.record(std::move(out), {x}, false,
                             [](const Tensor& gradient) { return std::vector<Tensor>{gradient}; });
}

}  // namespace

// y = (wide(x) * rsqrt(mean(wide(x)^2) + eps)) narrowed, times the weight. Saves wide(x), the factor of each row and
// the narrowed product; x itself goes.
Tensor unfused_rms_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight) {
  const std::int64_t size = x.elements(), rows = size / weight.shape.rows;
  const Tensor wide = cast(rec, name + ".wide", x, DataType::fp32);
  const Tensor factor = rec.session.empty(name + ".factor", DataType::fp32, rows, TensorRole::activation);
  {
    const Tensor squares = temporary(rec, name + ".squares", DataType::fp32, size);
    rec.session.kernel({.name = "pow", .reads = {wide}, .writes = {squares}});
    rec.session.kernel({.name = "mean", .reads = {squares}, .writes = {factor}});
  }
  rec.session.kernel({.name = "add_", .reads = {factor}, .writes = {factor}});
  rec.session.kernel({.name = "rsqrt", .reads = {factor}, .writes = {factor}});
  Tensor product = temporary(rec, name + ".product", DataType::fp32, size);
  rec.session.kernel({.name = "multiply", .reads = {wide, factor}, .writes = {product}, .cost = strided});
  const Tensor narrow = cast(rec, name + ".narrow", product, x.type());
  product = {};
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "multiply", .reads = {narrow, weight.value}, .writes = {out}, .cost = strided});
  const Tensor normed = weight.trains ? narrow : Tensor();  // its gradient alone reads it
  return rec.autograd.record(std::move(out), {x}, weight.trains, [=, &rec, &weight](const Tensor& gradient) {
    return unfused_rms_norm_backward(rec, name, {wide, factor, normed}, gradient, weight);
  });
}

// x cos + (second half negated, first half) sin. Saves nothing but the angles.
Tensor unfused_rotary(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& angles) {
  Tensor out = like(rec, name + ".out", x);
  rec.session.kernel({.name = "multiply", .reads = {x, angles}, .writes = {out}, .cost = strided});
  {
    const Tensor half = temporary(rec, name + ".half", x.type(), x.elements() / 2);
    rec.session.kernel(
        {.name = "negate", .reads = {x}, .writes = {half}, .cost = strided, .bytes = half.bytes() + half.bytes()});
    const Tensor turned = temporary(rec, name + ".turned", x.type(), x.elements());
    rec.session.kernel({.name = "concatenate",
                        .reads = {half, x},
                        .writes = {turned},
                        .cost = strided,
                        .bytes = turned.bytes() + turned.bytes()});
    rec.session.kernel({.name = "multiply", .reads = {turned, angles}, .writes = {turned}, .cost = strided});
    rec.session.kernel({.name = "add", .reads = {out, turned}, .writes = {out}, .cost = strided});
  }
  return rec.autograd.record(std::move(out), {x}, false, [=, &rec](const Tensor& gradient) {
    Tensor x_gradient = like(rec, name + ".in.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, angles}, .writes = {x_gradient}, .cost = strided});
    const Tensor turned = like(rec, name + ".turned.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "multiply", .reads = {gradient, angles}, .writes = {turned}, .cost = strided});
    const Tensor half = temporary(rec, name + ".half.grad", gradient.type(), gradient.elements() / 2);
    rec.session.kernel(
        {.name = "negate", .reads = {turned}, .writes = {half}, .cost = strided, .bytes = half.bytes() + half.bytes()});
    for (const Tensor& part : {half, turned}) {  // each half becomes a zero-filled whole, then they are added
      const Tensor whole = like(rec, name + ".slice.grad", gradient, TensorRole::temporary);
      rec.session.kernel({.name = "fill_zero", .writes = {whole}});
      rec.session.kernel(
          {.name = "copy", .reads = {part}, .writes = {whole}, .cost = strided, .bytes = half.bytes() + half.bytes()});
      rec.session.kernel({.name = "add_", .reads = {x_gradient, whole}, .writes = {x_gradient}, .cost = strided});
    }
    return std::vector<Tensor>{std::move(x_gradient)};
  });
}

// 0.5 x (1 + tanh(c (x + 0.044715 x^3))), as transformers' NewGELUActivation writes it: x, its half, the tanh and what
// is one more are saved.
Tensor gelu_new(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  const Tensor half = scale(rec, name + ".half", x);
  Tensor inner = cube(rec, name + ".cube", x);
  inner = scale(rec, name + ".small", inner);
  inner = add(rec, name + ".sum", x, inner);
  inner = scale(rec, name + ".scaled", inner);
  inner = pointwise(rec, name + ".tanh", inner, Pointwise::tanh);
  const Tensor more = add_number(rec, name + ".more", inner);
  inner = {};
  return multiply(rec, name + ".product", half, more);
}

}  // namespace spillway::models::eager
