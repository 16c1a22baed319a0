// Attention of EagerOps: one fused kernel, or scores, softmax, dropout and context one by one.
#include <memory>
#include <utility>

#include "base/input_error.h"
#include "models/network/attention_size.h"
#include "models/network/eager_ops.h"

namespace spillway::models {
namespace {

// Whether Megatron-LM's fused softmax took the shape in 2021 (fused_softmax.py, is_kernel_available): four matrices a
// block, up to 2,048 keys.
bool fits_fused_softmax(const AttentionShape& s) {
  return s.sequence > 16 && s.sequence <= 2048 && s.sequence % 4 == 0 && s.batch * s.heads % 4 == 0;
}

// Of heads and rotary positions around attention: calls that launch nothing, counted as those of linear layers.
constexpr double attention_views = 16, attention_views_backward = 42;

}  // namespace

// Gradients of a packed tensor are computed apart and then joined by a copy.
std::vector<Tensor> EagerOps::join_gradients(const std::string& name, const std::vector<Tensor>& inputs,
                                             std::vector<Tensor> gradients) {
  if (inputs.size() == gradients.size()) return gradients;
  Tensor packed = like(name + ".qkv.grad", inputs[0], TensorRole::temporary);
  session_.kernel({.name = "concatenate", .reads = std::move(gradients), .writes = {packed}});
  return {packed};
}

Tensor EagerOps::flash_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                                 const Tensor& bias) {
  Tensor out = kept_result(), statistics = kept_result();
  std::vector<Tensor> inputs = qkv;
  if (bias) inputs.push_back(bias);
  if (!out) {
    out = make(name + ".context", result_elements(shape));
    statistics = session_.empty(name + ".log_sum_exp", DataType::fp32, shape.batch * shape.heads * shape.sequence,
                                TensorRole::activation);
    session_.kernel({.name = "flash_attention",
                     .reads = inputs,
                     .writes = {out, statistics},
                     .cost = {.kind = KernelClass::attention_forward,
                              .type = type_,
                              .attention = shape,
                              .flops = flash_flops(shape, 2)},
                     .host = {.views = attention_views}});
    keep_result(out);
    keep_result(statistics);
  }
  const Tensor saved = out;
  return autograd_.record(
      std::move(out), inputs, false, [this, name, qkv, bias, saved, statistics, shape](const Tensor& gradient) {
        std::vector<Tensor> gradients = {make(name + ".q.grad", query_elements(shape), TensorRole::temporary),
                                         make(name + ".k.grad", key_elements(shape), TensorRole::temporary),
                                         make(name + ".v.grad", value_elements(shape), TensorRole::temporary)};
        // Workspace: the query gradient in fp32 and the row sums of gradient times result.
        const Tensor sums =
            session_.empty(name + ".q.grad_fp32", DataType::fp32, query_elements(shape), TensorRole::temporary);
        const Tensor rows =
            session_.empty(name + ".row_sums", DataType::fp32, statistics.elements(), TensorRole::temporary);
        std::vector<Tensor> reads = {gradient, saved, statistics};
        reads.insert(reads.end(), qkv.begin(), qkv.end());
        std::vector<Tensor> writes = gradients;
        writes.push_back(sums);
        writes.push_back(rows);
        const Tensor bias_gradient =
            bias.node() != 0 ? like(name + ".bias.grad", bias, TensorRole::temporary) : Tensor();
        if (bias) reads.push_back(bias);
        if (bias_gradient) writes.push_back(bias_gradient);
        session_.kernel({.name = "flash_attention_backward",
                         .reads = std::move(reads),
                         .writes = std::move(writes),
                         .cost = {.kind = KernelClass::attention_backward,
                                  .type = type_,
                                  .attention = shape,
                                  .flops = flash_flops(shape, 5)},
                         .host = {.views = attention_views_backward}});
        gradients = join_gradients(name, qkv, std::move(gradients));
        if (bias) gradients.push_back(bias_gradient);
        return gradients;
      });
}

// Keys or values as many as queries: grouped heads copied out, because a batched product wants equal batches.
Tensor EagerOps::repeat_heads(const std::string& name, const Tensor& x, const AttentionShape& shape) {
  if (shape.heads == shape.kv_heads) return x;
  Tensor out = make(name + ".repeated", query_elements(shape));
  session_.kernel({.name = "repeat_heads", .reads = {x}, .writes = {out}});
  const std::int64_t grouped = x.elements();
  return autograd_.record(std::move(out), {x}, false, [this, name, grouped](const Tensor& gradient) {
    Tensor sum = make(name + ".grouped.grad", grouped, TensorRole::temporary);
    session_.kernel({.name = "sum_heads", .reads = {gradient}, .writes = {sum}});
    return std::vector<Tensor>{std::move(sum)};
  });
}

Tensor EagerOps::copied(const std::string& name, const Tensor& x) {
  Tensor out = like(name + ".copy", x);
  session_.kernel({.name = "copy", .reads = {x}, .writes = {out}, .cost = {.access = MemoryAccess::strided}});
  return autograd_.record(std::move(out), {x}, false, [this, name](const Tensor& gradient) {
    Tensor result = like(name + ".copy.grad", gradient, TensorRole::temporary);
    session_.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {result}, .cost = {.access = MemoryAccess::strided}});
    return std::vector<Tensor>{std::move(result)};
  });
}

Tensor EagerOps::repeating_flash_attention(const std::string& name, std::vector<Tensor> qkv, AttentionShape shape) {
  SPILLWAY_ASSERT(qkv.size() == 3);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    qkv[i] = repeat_heads(name + (i == 1 ? ".k" : ".v"), qkv[i], shape);
  shape.kv_heads = shape.heads;
  return flash_attention(name, qkv, shape);
}

Tensor EagerOps::copying_flash_attention(const std::string& name, std::vector<Tensor> qkv, AttentionShape shape) {
  SPILLWAY_ASSERT(qkv.size() == 3);
  qkv[0] = copied(name + ".q", qkv[0]);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const std::string part = name + (i == 1 ? ".k" : ".v");
    // Repeating copies forwards; the gradient that comes back is summed over the copies, then laid out as it was.
    qkv[i] = shape.heads == shape.kv_heads ? copied(part, qkv[i]) : repeat_heads(part, laid_out(part, qkv[i]), shape);
  }
  shape.kv_heads = shape.heads;
  return copied(name + ".out", flash_attention(name, qkv, shape));
}

// x itself; its gradient is copied.
Tensor EagerOps::laid_out(const std::string& name, const Tensor& x) {
  return autograd_.record(x, {x}, false, [this, name](const Tensor& gradient) {
    Tensor result = like(name + ".copy.grad", gradient, TensorRole::temporary);
    session_.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {result}, .cost = {.access = MemoryAccess::strided}});
    return std::vector<Tensor>{std::move(result)};
  });
}

struct EagerOps::Core {
  AttentionShape shape;
  bool capped = false;
  std::vector<Tensor> qkv;     // one packed or three
  Tensor bias;                 // added to the scores of every sequence; empty: none
  Tensor tanh;                 // of capped scores
  Tensor softmax, mask, kept;  // kept: the softmax after dropout; mask empty without dropout
  bool softmax_in_parts = false;

  // The operand of a product that holds queries (0), keys (1), values (2).
  [[nodiscard]] const Tensor& part(std::size_t i) const { return qkv.size() == 1 ? qkv[0] : qkv[i]; }
  // A head begins at a multiple of its width in its operand, so the width is what the products' alignment comes from:
  // contiguous in all operands but scores, and the stride between matrices.
  [[nodiscard]] GemmShape rows_by_rows() const {
    return {shape.sequence, shape.sequence, shape.head_dim, shape.batch * shape.heads};
  }
  [[nodiscard]] GemmShape rows_by_width() const {
    return {shape.sequence, shape.head_dim, shape.sequence, shape.batch * shape.heads, GemmLayout::nn};
  }
  // The same two with values.
  [[nodiscard]] std::int64_t value_width() const { return shape.value_dim > 0 ? shape.value_dim : shape.head_dim; }
  [[nodiscard]] GemmShape rows_by_values() const {
    return {shape.sequence, shape.sequence, value_width(), shape.batch * shape.heads};
  }
  [[nodiscard]] GemmShape rows_by_value_width() const {
    return {shape.sequence, value_width(), shape.sequence, shape.batch * shape.heads, GemmLayout::nn};
  }
  [[nodiscard]] std::int64_t result_elements() const {
    return shape.batch * shape.sequence * shape.heads * value_width();
  }
};

// A clone that masked_fill_ goes over: PyTorch's masked_fill, and its gradient's.
Tensor EagerOps::filled_copy(const std::string& name, const Tensor& scores) {
  Tensor out = like(name, scores, TensorRole::temporary);
  session_.kernel({.name = "copy", .reads = {scores}, .writes = {out}});
  session_.kernel({.name = "masked_fill_", .reads = {out}, .writes = {out}, .cost = {.access = MemoryAccess::strided}});
  return out;
}

// Scaled and, if causal, masked, as kernels of their own.
Tensor EagerOps::masked_scores(const std::string& name, const Core& core, Tensor scores) {
  Tensor scaled = like(name + ".scores.scaled", scores, TensorRole::temporary);
  session_.kernel({.name = "multiply", .reads = {scores}, .writes = {scaled}});
  if (!core.shape.causal) return scaled;
  scores = {};
  if (options_.scores == ScoreKernels::eager) return filled_copy(name + ".scores.masked", scaled);
  Tensor masked = like(name + ".scores.masked", scaled, TensorRole::temporary);
  session_.kernel({.name = "add", .reads = {scaled}, .writes = {masked}, .cost = {.access = MemoryAccess::strided}});
  return masked;
}

Tensor EagerOps::masked_scores_backward(const std::string& name, const Core& core, Tensor gradient) {
  if (core.shape.causal && options_.scores == ScoreKernels::eager)
    gradient = filled_copy(name + ".scores.grad.masked", gradient);
  Tensor scaled = like(name + ".scores.grad.scaled", gradient, TensorRole::temporary);
  session_.kernel({.name = "multiply", .reads = {gradient}, .writes = {scaled}});
  return scaled;
}

// Probabilities in the type of the scores; keeps what the backward needs in core.softmax.
Tensor EagerOps::softmax(const std::string& name, Core& core, Tensor scores) {
  if (options_.scores != ScoreKernels::fused) {
    const DataType type = scores.type();
    // Of 16 bits autocast casts to fp32 first; transformers' softmax reads 16 bits and writes fp32.
    const bool is_wide = options_.autocast || options_.scores == ScoreKernels::transformers;
    scores = masked_scores(name, core, std::move(scores));
    if (options_.autocast && options_.scores == ScoreKernels::eager)
      scores = cast(name + ".scores.wide", scores, DataType::fp32);
    core.softmax =
        session_.empty(name + ".softmax", is_wide ? DataType::fp32 : type, scores.elements(), TensorRole::activation);
    session_.kernel(
        {.name = "softmax", .reads = {scores}, .writes = {core.softmax}, .cost = {.memory = MemoryKind::softmax}});
    scores = {};
    return cast(name + ".probabilities", core.softmax, type);
  }
  if (!core.softmax_in_parts) {
    core.softmax = like(name + ".softmax", scores);
    session_.kernel({.name = "masked_softmax",
                     .reads = {scores},
                     .writes = {core.softmax},
                     .cost = {.memory = MemoryKind::softmax}});
    return core.softmax;
  }
  const DataType type = scores.type();
  Tensor wide = cast(name + ".scores.wide", scores, DataType::fp32);
  scores = {};
  const Tensor scaled = like(name + ".scores.scaled", wide, TensorRole::temporary);
  session_.kernel({.name = "multiply", .reads = {wide}, .writes = {scaled}});
  wide = {};
  session_.kernel({.name = "masked_fill_", .reads = {scaled}, .writes = {scaled}});
  core.softmax = like(name + ".softmax", scaled);
  session_.kernel(
      {.name = "softmax", .reads = {scaled}, .writes = {core.softmax}, .cost = {.memory = MemoryKind::softmax}});
  return cast(name + ".probabilities", core.softmax, type);
}

Tensor EagerOps::softmax_backward(const std::string& name, Core& core, Tensor gradient) {
  if (options_.scores != ScoreKernels::fused) {
    const DataType type = gradient.type();
    gradient = cast(name + ".softmax.grad.wide", gradient, core.softmax.type());
    const bool narrows = options_.scores == ScoreKernels::transformers;  // the kernel's result is in 16 bits
    Tensor scores = session_.empty(name + ".scores.grad", narrows ? type : gradient.type(), gradient.elements(),
                                   TensorRole::temporary);
    session_.kernel({.name = "softmax_backward",
                     .reads = {gradient, core.softmax},
                     .writes = {scores},
                     .cost = {.memory = MemoryKind::softmax}});
    core.softmax = gradient = {};
    return masked_scores_backward(name, core, cast(name + ".scores.grad.narrow", scores, type));
  }
  if (!core.softmax_in_parts) {
    Tensor scores = like(name + ".scores.grad", gradient, TensorRole::temporary);
    session_.kernel({.name = "masked_softmax_backward",
                     .reads = {gradient, core.softmax},
                     .writes = {scores},
                     .cost = {.memory = MemoryKind::softmax}});
    core.softmax = {};
    return scores;
  }
  const DataType type = gradient.type();
  Tensor wide = cast(name + ".softmax.grad.wide", gradient, DataType::fp32);
  gradient = {};
  Tensor scores = like(name + ".scores.grad.wide", wide, TensorRole::temporary);
  session_.kernel({.name = "softmax_backward",
                   .reads = {wide, core.softmax},
                   .writes = {scores},
                   .cost = {.memory = MemoryKind::softmax}});
  core.softmax = {};
  wide = {};
  Tensor unmasked = like(name + ".scores.grad.unmasked", scores, TensorRole::temporary);
  session_.kernel({.name = "copy", .reads = {scores}, .writes = {unmasked}});
  scores = {};
  session_.kernel({.name = "masked_fill_", .reads = {unmasked}, .writes = {unmasked}});
  Tensor unscaled = like(name + ".scores.grad.unscaled", unmasked, TensorRole::temporary);
  session_.kernel({.name = "multiply", .reads = {unmasked}, .writes = {unscaled}});
  unmasked = {};
  return cast(name + ".scores.grad", unscaled, type);
}

Tensor EagerOps::plain_attention(const std::string& name, const std::vector<Tensor>& qkv, const AttentionShape& shape,
                                 double dropout, const Tensor& bias, bool capped) {
  SPILLWAY_ASSERT(qkv.size() == 3 || shape.heads == shape.kv_heads);
  auto core = std::make_shared<Core>(Core{.shape = shape, .capped = capped, .qkv = qkv, .bias = bias});
  if (qkv.size() == 3) {
    core->qkv[1] = repeat_heads(name + ".k", qkv[1], shape);
    core->qkv[2] = repeat_heads(name + ".v", qkv[2], shape);
  }
  if (options_.scores != ScoreKernels::fused)  // torch.matmul wants matrices behind each other
    for (std::size_t i = 0; i < qkv.size(); ++i)
      if (core->qkv[i].id() == qkv[i].id()) core->qkv[i] = copied(name + ".heads", qkv[i]);
  const std::int64_t square = shape.batch * shape.heads * shape.sequence * shape.sequence;
  Tensor scores = make(name + ".scores", square);
  std::vector<Tensor> operands = {core->part(0)};
  if (qkv.size() == 3) operands.push_back(core->part(1));
  gemm("gemm_scores", core->rows_by_rows(), std::move(operands), scores);
  if (capped) {  // c tanh(scores / c)
    session_.kernel({.name = "scale_", .reads = {scores}, .writes = {scores}});
    core->tanh = make(name + ".tanh", square);
    session_.kernel({.name = "tanh", .reads = {scores}, .writes = {core->tanh}});
    session_.kernel({.name = "scale", .reads = {core->tanh}, .writes = {scores}});
  }
  if (bias) session_.kernel({.name = "add_bias_", .reads = {scores, bias}, .writes = {scores}});
  core->softmax_in_parts = options_.softmax_limits && !fits_fused_softmax(shape);
  core->kept = softmax(name, *core, std::move(scores));
  scores = {};
  if (dropout > 0) {
    const Tensor probabilities = std::exchange(core->kept, make(name + ".dropout.out", square));
    core->mask = session_.empty(name + ".dropout.mask", DataType::byte, square, TensorRole::activation);
    session_.kernel({.name = "dropout", .reads = {probabilities}, .writes = {core->kept, core->mask}});
  }
  Tensor out = make(name + ".context", core->result_elements());
  gemm("gemm_context", core->rows_by_value_width(), {core->kept, core->part(2)}, out);
  if (options_.separate_passes) {
    const Tensor by_head = std::exchange(out, make(name + ".context.joined", core->result_elements()));
    session_.kernel({.name = "copy", .reads = {by_head}, .writes = {out}});
  }
  std::vector<Tensor> inputs = core->qkv;
  if (bias) inputs.push_back(bias);
  out = autograd_.record(std::move(out), inputs, false, [this, name, core](Tensor gradient) {
    return core_backward(name, *core, std::move(gradient));
  });
  return options_.scores == ScoreKernels::fused ? out : copied(name + ".out", out);
}

std::vector<Tensor> EagerOps::core_backward(const std::string& name, Core& core, Tensor gradient) {
  const std::int64_t size = query_elements(core.shape);
  Tensor square = like(name + ".kept.grad", core.kept, TensorRole::temporary);
  gemm("gemm_context_dgrad", core.rows_by_values(), {gradient, core.part(2)}, square);
  Tensor v_gradient = make(name + ".v.grad", core.result_elements(), TensorRole::temporary);
  gemm("gemm_context_dgrad", core.rows_by_value_width(), {core.kept, gradient}, v_gradient);
  core.kept = {};
  gradient = {};
  if (core.mask) {
    Tensor undropped = like(name + ".softmax.grad", square, TensorRole::temporary);
    session_.kernel({.name = "dropout_backward", .reads = {square, core.mask}, .writes = {undropped}});
    square = std::move(undropped);
    core.mask = {};
  }
  Tensor scores = softmax_backward(name, core, std::move(square));
  square = {};
  if (core.capped) {
    session_.kernel({.name = "tanh_backward_", .reads = {scores, core.tanh}, .writes = {scores}});
    core.tanh = {};
  }
  Tensor q_gradient = make(name + ".q.grad", size, TensorRole::temporary);
  gemm("gemm_scores_dgrad", core.rows_by_width(), {scores, core.part(1)}, q_gradient);
  Tensor k_gradient = make(name + ".k.grad", size, TensorRole::temporary);
  gemm("gemm_scores_dgrad", core.rows_by_width(), {scores, core.part(0)}, k_gradient);
  Tensor bias_gradient = core.bias.node() != 0 ? scores : Tensor();
  if (bias_gradient && core.shape.batch > 1) {
    bias_gradient = make(name + ".bias.grad", core.bias.elements(), TensorRole::temporary);
    session_.kernel({.name = "sum", .reads = {scores}, .writes = {bias_gradient}});
  }
  scores = {};
  std::vector<Tensor> gradients =
      join_gradients(name, core.qkv, {std::move(q_gradient), std::move(k_gradient), std::move(v_gradient)});
  if (core.bias) gradients.push_back(std::move(bias_gradient));
  return gradients;
}

}  // namespace spillway::models
