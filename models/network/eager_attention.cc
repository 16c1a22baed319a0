// Attention: one fused kernel, or scores, softmax, dropout and context one by one.
#include <memory>
#include <utility>

#include "base/input_error.h"
#include "models/network/attention_size.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

// Whether Megatron-LM's fused softmax took the shape in 2021 (fused_softmax.py, is_kernel_available): four matrices a
// block, up to 2,048 keys.
bool fits_fused_softmax(const AttentionShape& s) {
  return s.sequence > 16 && s.sequence <= 2048 && s.sequence % 4 == 0 && s.batch * s.heads % 4 == 0;
}

// Of heads and rotary positions around attention: calls that launch nothing, counted as those of linear layers.
constexpr double attention_views = 16, attention_views_backward = 42;

struct Core {
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

// x itself; its gradient is copied.
Tensor laid_out(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  return rec.autograd.record(x, {x}, false, [&rec, name](const Tensor& gradient) {
    Tensor result = like(rec, name + ".copy.grad", gradient, TensorRole::temporary);
    rec.session.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {result}, .cost = {.access = MemoryAccess::strided}});
    return std::vector<Tensor>{std::move(result)};
  });
}

// A clone that masked_fill_ goes over: PyTorch's masked_fill, and its gradient's.
Tensor filled_copy(EagerRecorder& rec, const std::string& name, const Tensor& scores) {
  Tensor out = like(rec, name, scores, TensorRole::temporary);
  rec.session.kernel({.name = "copy", .reads = {scores}, .writes = {out}});
  rec.session.kernel(
      {.name = "masked_fill_", .reads = {out}, .writes = {out}, .cost = {.access = MemoryAccess::strided}});
  return out;
}

// Scaled and, if causal, masked, as kernels of their own.
Tensor masked_scores(EagerRecorder& rec, const std::string& name, const Core& core, Tensor scores) {
  Tensor scaled = like(rec, name + ".scores.scaled", scores, TensorRole::temporary);
  rec.session.kernel({.name = "multiply", .reads = {scores}, .writes = {scaled}});
  if (!core.shape.causal) return scaled;
  scores = {};
  if (rec.options.scores == ScoreKernels::eager) return filled_copy(rec, name + ".scores.masked", scaled);
  Tensor masked = like(rec, name + ".scores.masked", scaled, TensorRole::temporary);
  rec.session.kernel({.name = "add", .reads = {scaled}, .writes = {masked}, .cost = {.access = MemoryAccess::strided}});
  return masked;
}

Tensor masked_scores_backward(EagerRecorder& rec, const std::string& name, const Core& core, Tensor gradient) {
  if (core.shape.causal && rec.options.scores == ScoreKernels::eager)
    gradient = filled_copy(rec, name + ".scores.grad.masked", gradient);
  Tensor scaled = like(rec, name + ".scores.grad.scaled", gradient, TensorRole::temporary);
  rec.session.kernel({.name = "multiply", .reads = {gradient}, .writes = {scaled}});
  return scaled;
}

// Probabilities in the type of the scores; keeps what the backward needs in core.softmax.
Tensor softmax(EagerRecorder& rec, const std::string& name, Core& core, Tensor scores) {
  if (rec.options.scores != ScoreKernels::fused) {
    const DataType type = scores.type();
    // Of 16 bits autocast casts to fp32 first; transformers' softmax reads 16 bits and writes fp32.
    const bool is_wide = rec.setup.autocast || rec.options.scores == ScoreKernels::transformers;
    scores = masked_scores(rec, name, core, std::move(scores));
    if (rec.setup.autocast && rec.options.scores == ScoreKernels::eager)
      scores = cast(rec, name + ".scores.wide", scores, DataType::fp32);
    core.softmax = rec.session.empty(name + ".softmax", is_wide ? DataType::fp32 : type, scores.elements(),
                                     TensorRole::activation);
    rec.session.kernel(
        {.name = "softmax", .reads = {scores}, .writes = {core.softmax}, .cost = {.memory = MemoryKind::softmax}});
    scores = {};
    return cast(rec, name + ".probabilities", core.softmax, type);
  }
  if (!core.softmax_in_parts) {
    core.softmax = like(rec, name + ".softmax", scores);
    rec.session.kernel({.name = "masked_softmax",
                        .reads = {scores},
                        .writes = {core.softmax},
                        .cost = {.memory = MemoryKind::softmax}});
    return core.softmax;
  }
  const DataType type = scores.type();
  Tensor wide = cast(rec, name + ".scores.wide", scores, DataType::fp32);
  scores = {};
  const Tensor scaled = like(rec, name + ".scores.scaled", wide, TensorRole::temporary);
  rec.session.kernel({.name = "multiply", .reads = {wide}, .writes = {scaled}});
  wide = {};
  rec.session.kernel({.name = "masked_fill_", .reads = {scaled}, .writes = {scaled}});
  core.softmax = like(rec, name + ".softmax", scaled);
  rec.session.kernel(
      {.name = "softmax", .reads = {scaled}, .writes = {core.softmax}, .cost = {.memory = MemoryKind::softmax}});
  return cast(rec, name + ".probabilities", core.softmax, type);
}

Tensor softmax_backward(EagerRecorder& rec, const std::string& name, Core& core, Tensor gradient) {
  if (rec.options.scores != ScoreKernels::fused) {
    const DataType type = gradient.type();
    gradient = cast(rec, name + ".softmax.grad.wide", gradient, core.softmax.type());
    const bool narrows = rec.options.scores == ScoreKernels::transformers;  // the kernel's result is in 16 bits
    Tensor scores = rec.session.empty(name + ".scores.grad", narrows ? type : gradient.type(), gradient.elements(),
                                      TensorRole::temporary);
    rec.session.kernel({.name = "softmax_backward",
                        .reads = {gradient, core.softmax},
                        .writes = {scores},
                        .cost = {.memory = MemoryKind::softmax}});
    core.softmax = gradient = {};
    return masked_scores_backward(rec, name, core, cast(rec, name + ".scores.grad.narrow", scores, type));
  }
  if (!core.softmax_in_parts) {
    Tensor scores = like(rec, name + ".scores.grad", gradient, TensorRole::temporary);
    rec.session.kernel({.name = "masked_softmax_backward",
                        .reads = {gradient, core.softmax},
                        .writes = {scores},
                        .cost = {.memory = MemoryKind::softmax}});
    core.softmax = {};
    return scores;
  }
  const DataType type = gradient.type();
  Tensor wide = cast(rec, name + ".softmax.grad.wide", gradient, DataType::fp32);
  gradient = {};
  Tensor scores = like(rec, name + ".scores.grad.wide", wide, TensorRole::temporary);
  rec.session.kernel({.name = "softmax_backward",
                      .reads = {wide, core.softmax},
                      .writes = {scores},
                      .cost = {.memory = MemoryKind::softmax}});
  core.softmax = {};
  wide = {};
  Tensor unmasked = like(rec, name + ".scores.grad.unmasked", scores, TensorRole::temporary);
  rec.session.kernel({.name = "copy", .reads = {scores}, .writes = {unmasked}});
  scores = {};
  rec.session.kernel({.name = "masked_fill_", .reads = {unmasked}, .writes = {unmasked}});
  Tensor unscaled = like(rec, name + ".scores.grad.unscaled", unmasked, TensorRole::temporary);
  rec.session.kernel({.name = "multiply", .reads = {unmasked}, .writes = {unscaled}});
  unmasked = {};
  return cast(rec, name + ".scores.grad", unscaled, type);
}

std::vector<Tensor> core_backward(EagerRecorder& rec, const std::string& name, Core& core, Tensor gradient) {
  const std::int64_t size = query_elements(core.shape);
  Tensor square = like(rec, name + ".kept.grad", core.kept, TensorRole::temporary);
  gemm(rec, "gemm_context_dgrad", core.rows_by_values(), {gradient, core.part(2)}, square);
  Tensor v_gradient = make(rec, name + ".v.grad", core.result_elements(), TensorRole::temporary);
  gemm(rec, "gemm_context_dgrad", core.rows_by_value_width(), {core.kept, gradient}, v_gradient);
  core.kept = {};
  gradient = {};
  if (core.mask) {
    Tensor undropped = like(rec, name + ".softmax.grad", square, TensorRole::temporary);
    rec.session.kernel({.name = "dropout_backward", .reads = {square, core.mask}, .writes = {undropped}});
    square = std::move(undropped);
    core.mask = {};
  }
  Tensor scores = softmax_backward(rec, name, core, std::move(square));
  square = {};
  if (core.capped) {
    rec.session.kernel({.name = "tanh_backward_", .reads = {scores, core.tanh}, .writes = {scores}});
    core.tanh = {};
  }
  Tensor q_gradient = make(rec, name + ".q.grad", size, TensorRole::temporary);
  gemm(rec, "gemm_scores_dgrad", core.rows_by_width(), {scores, core.part(1)}, q_gradient);
  Tensor k_gradient = make(rec, name + ".k.grad", size, TensorRole::temporary);
  gemm(rec, "gemm_scores_dgrad", core.rows_by_width(), {scores, core.part(0)}, k_gradient);
  Tensor bias_gradient = core.bias.node() != 0 ? scores : Tensor();
  if (bias_gradient && core.shape.batch > 1) {
    bias_gradient = make(rec, name + ".bias.grad", core.bias.elements(), TensorRole::temporary);
    rec.session.kernel({.name = "sum", .reads = {scores}, .writes = {bias_gradient}});
  }
  scores = {};
  std::vector<Tensor> gradients =
      join_gradients(rec, name, core.qkv, {std::move(q_gradient), std::move(k_gradient), std::move(v_gradient)});
  if (core.bias) gradients.push_back(std::move(bias_gradient));
  return gradients;
}

}  // namespace

// Gradients of a packed tensor are computed apart and then joined by a copy.
std::vector<Tensor> join_gradients(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& inputs,
                                   std::vector<Tensor> gradients) {
  if (inputs.size() == gradients.size()) return gradients;
  Tensor packed = like(rec, name + ".qkv.grad", inputs[0], TensorRole::temporary);
  rec.session.kernel({.name = "concatenate", .reads = std::move(gradients), .writes = {packed}});
  return {packed};
}

Tensor flash_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                       const AttentionShape& shape, const Tensor& bias) {
  Tensor out = rec.kept_result(), statistics = rec.kept_result();
  std::vector<Tensor> inputs = qkv;
  if (bias) inputs.push_back(bias);
  if (!out) {
    out = make(rec, name + ".context", result_elements(shape));
    statistics = rec.session.empty(name + ".log_sum_exp", DataType::fp32, shape.batch * shape.heads * shape.sequence,
                                   TensorRole::activation);
    rec.session.kernel({.name = "flash_attention",
                        .reads = inputs,
                        .writes = {out, statistics},
                        .cost = {.kind = KernelClass::attention_forward,
                                 .type = rec.options.type,
                                 .attention = shape,
                                 .flops = flash_flops(shape, 2)},
                        .host = {.views = attention_views}});
    rec.keep_result(out);
    rec.keep_result(statistics);
  }
  const Tensor saved = out;
  return rec.autograd.record(
      std::move(out), inputs, false, [&rec, name, qkv, bias, saved, statistics, shape](const Tensor& gradient) {
        std::vector<Tensor> gradients = {make(rec, name + ".q.grad", query_elements(shape), TensorRole::temporary),
                                         make(rec, name + ".k.grad", key_elements(shape), TensorRole::temporary),
                                         make(rec, name + ".v.grad", value_elements(shape), TensorRole::temporary)};
        // Workspace: the query gradient in fp32 and the row sums of gradient times result.
        const Tensor sums =
            rec.session.empty(name + ".q.grad_fp32", DataType::fp32, query_elements(shape), TensorRole::temporary);
        const Tensor rows =
            rec.session.empty(name + ".row_sums", DataType::fp32, statistics.elements(), TensorRole::temporary);
        std::vector<Tensor> reads = {gradient, saved, statistics};
        reads.insert(reads.end(), qkv.begin(), qkv.end());
        std::vector<Tensor> writes = gradients;
        writes.push_back(sums);
        writes.push_back(rows);
        const Tensor bias_gradient =
            bias.node() != 0 ? like(rec, name + ".bias.grad", bias, TensorRole::temporary) : Tensor();
        if (bias) reads.push_back(bias);
        if (bias_gradient) writes.push_back(bias_gradient);
        rec.session.kernel({.name = "flash_attention_backward",
                            .reads = std::move(reads),
                            .writes = std::move(writes),
                            .cost = {.kind = KernelClass::attention_backward,
                                     .type = rec.options.type,
                                     .attention = shape,
                                     .flops = flash_flops(shape, 5)},
                            .host = {.views = attention_views_backward}});
        gradients = join_gradients(rec, name, qkv, std::move(gradients));
        if (bias) gradients.push_back(bias_gradient);
        return gradients;
      });
}

// Keys or values as many as queries: grouped heads copied out, because a batched product wants equal batches.
Tensor repeat_heads(EagerRecorder& rec, const std::string& name, const Tensor& x, const AttentionShape& shape) {
  if (shape.heads == shape.kv_heads) return x;
  Tensor out = make(rec, name + ".repeated", query_elements(shape));
  rec.session.kernel({.name = "repeat_heads", .reads = {x}, .writes = {out}});
  const std::int64_t grouped = x.elements();
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name, grouped](const Tensor& gradient) {
    Tensor sum = make(rec, name + ".grouped.grad", grouped, TensorRole::temporary);
    rec.session.kernel({.name = "sum_heads", .reads = {gradient}, .writes = {sum}});
    return std::vector<Tensor>{std::move(sum)};
  });
}

Tensor copied(EagerRecorder& rec, const std::string& name, const Tensor& x) {
  Tensor out = like(rec, name + ".copy", x);
  rec.session.kernel({.name = "copy", .reads = {x}, .writes = {out}, .cost = {.access = MemoryAccess::strided}});
  return rec.autograd.record(std::move(out), {x}, false, [&rec, name](const Tensor& gradient) {
    Tensor result = like(rec, name + ".copy.grad", gradient, TensorRole::temporary);
    rec.session.kernel(
        {.name = "copy", .reads = {gradient}, .writes = {result}, .cost = {.access = MemoryAccess::strided}});
    return std::vector<Tensor>{std::move(result)};
  });
}

Tensor repeating_flash_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv,
                                 AttentionShape shape) {
  SPILLWAY_ASSERT(qkv.size() == 3);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    qkv[i] = repeat_heads(rec, name + (i == 1 ? ".k" : ".v"), qkv[i], shape);
  shape.kv_heads = shape.heads;
  return flash_attention(rec, name, qkv, shape);
}

Tensor copying_flash_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv,
                               AttentionShape shape) {
  SPILLWAY_ASSERT(qkv.size() == 3);
  qkv[0] = copied(rec, name + ".q", qkv[0]);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const std::string part = name + (i == 1 ? ".k" : ".v");
    // Repeating copies forwards; the gradient that comes back is summed over the copies, then laid out as it was.
    qkv[i] = shape.heads == shape.kv_heads ? copied(rec, part, qkv[i])
                                           : repeat_heads(rec, part, laid_out(rec, part, qkv[i]), shape);
  }
  shape.kv_heads = shape.heads;
  return copied(rec, name + ".out", flash_attention(rec, name, qkv, shape));
}

Tensor plain_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                       const AttentionShape& shape, double dropout, const Tensor& bias, bool capped) {
  SPILLWAY_ASSERT(qkv.size() == 3 || shape.heads == shape.kv_heads);
  auto core = std::make_shared<Core>(Core{.shape = shape, .capped = capped, .qkv = qkv, .bias = bias});
  if (qkv.size() == 3) {
    core->qkv[1] = repeat_heads(rec, name + ".k", qkv[1], shape);
    core->qkv[2] = repeat_heads(rec, name + ".v", qkv[2], shape);
  }
  if (rec.options.scores != ScoreKernels::fused)  // torch.matmul wants matrices behind each other
    for (std::size_t i = 0; i < qkv.size(); ++i)
      if (core->qkv[i].id() == qkv[i].id()) core->qkv[i] = copied(rec, name + ".heads", qkv[i]);
  const std::int64_t square = shape.batch * shape.heads * shape.sequence * shape.sequence;
  Tensor scores = make(rec, name + ".scores", square);
  std::vector<Tensor> operands = {core->part(0)};
  if (qkv.size() == 3) operands.push_back(core->part(1));
  gemm(rec, "gemm_scores", core->rows_by_rows(), std::move(operands), scores);
  if (capped) {  // c tanh(scores / c)
    rec.session.kernel({.name = "scale_", .reads = {scores}, .writes = {scores}});
    core->tanh = make(rec, name + ".tanh", square);
    rec.session.kernel({.name = "tanh", .reads = {scores}, .writes = {core->tanh}});
    rec.session.kernel({.name = "scale", .reads = {core->tanh}, .writes = {scores}});
  }
  if (bias) rec.session.kernel({.name = "add_bias_", .reads = {scores, bias}, .writes = {scores}});
  core->softmax_in_parts = rec.setup.traits().softmax_limits && !fits_fused_softmax(shape);
  core->kept = softmax(rec, name, *core, std::move(scores));
  scores = {};
  if (dropout > 0) {
    const Tensor probabilities = std::exchange(core->kept, make(rec, name + ".dropout.out", square));
    core->mask = rec.session.empty(name + ".dropout.mask", DataType::byte, square, TensorRole::activation);
    rec.session.kernel({.name = "dropout", .reads = {probabilities}, .writes = {core->kept, core->mask}});
  }
  Tensor out = make(rec, name + ".context", core->result_elements());
  gemm(rec, "gemm_context", core->rows_by_value_width(), {core->kept, core->part(2)}, out);
  if (rec.options.separate_passes) {
    const Tensor by_head = std::exchange(out, make(rec, name + ".context.joined", core->result_elements()));
    rec.session.kernel({.name = "copy", .reads = {by_head}, .writes = {out}});
  }
  std::vector<Tensor> inputs = core->qkv;
  if (bias) inputs.push_back(bias);
  out = rec.autograd.record(std::move(out), inputs, false, [&rec, name, core](Tensor gradient) {
    return core_backward(rec, name, *core, std::move(gradient));
  });
  return rec.options.scores == ScoreKernels::fused ? out : copied(rec, name + ".out", out);
}

}  // namespace spillway::models::eager
