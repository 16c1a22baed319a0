#include "models/network/mla_attention.h"

#include <utility>

namespace spillway::models {

Tensor LatentAttentionBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, options_.type, elements, role);
}

Tensor LatentAttentionBlock::linear(const std::string& name, const Tensor& x) {
  return context_.ops.linear(name, x, weight_(name), nullptr);
}

// Split by heads; x is whole, or this rank's part of the sequence.
Tensor LatentAttentionBlock::up(const std::string& name, const Tensor& x) {
  return context_.ops.column_linears({{name, &weight_(name), nullptr}}, x)[0];
}

Tensor LatentAttentionBlock::queries(const std::string& name, const Tensor& x, const Tensor& angles) {
  Tensor q;
  if (model_.latent.query_rank > 0) {
    q = linear(name + ".q_down", x);
    q = context_.ops.norm(name + ".q_latent_norm", q, weight_(name + ".q_latent_norm"), nullptr);
    q = up(name + ".q_up", q);
  } else {
    q = up(name + ".q", x);
  }
  return context_.ops.rotary(name + ".q_rotary", q, angles);
}

// RMSNorm of the first kv_rank elements of each row; its gradient leaves the rest of the row 0.
Tensor LatentAttentionBlock::latent_norm(const std::string& name, const Tensor& down) {
  EagerSession& session = context_.session;
  TrainedParameter& weight = weight_(name);
  const std::int64_t rank = model_.latent.kv_rank, tokens = down.elements() / (rank + model_.latent.rope_dim);
  Tensor out = make(name + ".out", tokens * rank, TensorRole::activation);
  const Tensor statistics = session.empty(name + ".statistics", DataType::fp32, tokens, TensorRole::activation);
  session.kernel({.name = "rms_norm",
                  .reads = {down, weight.value},
                  .writes = {out, statistics},
                  .bytes = out.bytes() + out.bytes() + statistics.bytes()});
  return context_.autograd.record(
      std::move(out), {down}, weight.trains, [this, &session, name, down, statistics, &weight](const Tensor& gradient) {
        Tensor back = make(name + ".in.grad", down.elements());
        session.kernel(
            {.name = "rms_norm_backward", .reads = {gradient, down, statistics, weight.value}, .writes = {back}});
        if (!weight.trains) return std::vector<Tensor>{std::move(back)};
        Tensor sum = make(weight.shape.name + ".grad", weight.shape.elements(), TensorRole::gradient);
        session.kernel({.name = "rms_norm_backward_weight", .reads = {gradient, down, statistics}, .writes = {sum}});
        context_.autograd.accumulate(weight, std::move(sum));
        return std::vector<Tensor>{std::move(back)};
      });
}

Tensor LatentAttentionBlock::shared_key(const std::string& name, const Tensor& down, const Tensor& angles) {
  EagerSession& session = context_.session;
  const std::int64_t rope = model_.latent.rope_dim, whole = down.elements();
  Tensor out = make(name + ".out", whole / (model_.latent.kv_rank + rope) * rope, TensorRole::activation);
  session.kernel({.name = "rotary",
                  .reads = {down, angles},
                  .writes = {out},
                  .bytes = out.bytes() + out.bytes() + angles.bytes()});
  return context_.autograd.record(
      std::move(out), {down}, false, [this, &session, name, angles, whole](const Tensor& gradient) {
        Tensor back = make(name + ".in.grad", whole);
        session.kernel({.name = "rotary_backward", .reads = {gradient, angles}, .writes = {back}});
        return std::vector<Tensor>{std::move(back)};
      });
}

Tensor LatentAttentionBlock::core(const std::string& name, const Tensor& q, const Tensor& expanded, const Tensor& key) {
  EagerSession& session = context_.session;
  const LatentAttention& latent = model_.latent;
  const std::int64_t heads = model_.heads / setup_.tensor_parallel;
  const std::int64_t rows = setup_.tokens() * heads, wide = model_.head_dim, narrow = latent.value_dim;
  const AttentionShape shape{.batch = setup_.micro_batch,
                             .heads = heads,
                             .kv_heads = heads,
                             .sequence = setup_.sequence,
                             .head_dim = wide,
                             .value_dim = narrow};
  const auto flops = [rows, this](std::int64_t width) { return Flops(rows * setup_.sequence * width); };
  if (!setup_.flash_attention) return plain_core(name, q, assembled(name, expanded, key, shape), shape);
  const Tensor keys = make(name + ".keys", rows * wide, TensorRole::activation);
  session.kernel(
      {.name = "assemble_keys", .reads = {expanded, key}, .writes = {keys}, .bytes = keys.bytes() + keys.bytes()});
  const Tensor values = make(name + ".values", rows * narrow, TensorRole::activation);
  session.kernel({.name = "copy", .reads = {expanded}, .writes = {values}, .bytes = values.bytes() + values.bytes()});
  Tensor out = make(name + ".context", rows * narrow, TensorRole::activation);
  const Tensor sums = session.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  session.kernel({.name = "flash_attention",
                  .reads = {q, keys, values},
                  .writes = {out, sums},
                  .cost = {.kind = KernelClass::attention_forward,
                           .type = options_.type,
                           .attention = shape,
                           .flops = flops(wide + narrow)}});
  const Tensor saved = out;
  const std::int64_t expanded_size = expanded.elements(), key_size = key.elements();
  return context_.autograd.record(
      std::move(out), {q, expanded, key}, false,
      [this, &session, name, shape, q, keys, values, saved, sums, expanded_size, key_size,
       flops](const Tensor& gradient) {
        Tensor q_back = make(name + ".q.grad", q.elements());
        Tensor keys_back = make(name + ".keys.grad", keys.elements());
        Tensor values_back = make(name + ".values.grad", values.elements());
        const Tensor wide_back =
            session.empty(name + ".q.grad_fp32", DataType::fp32, q.elements(), TensorRole::temporary);
        const Tensor row_sums =
            session.empty(name + ".row_sums", DataType::fp32, sums.elements(), TensorRole::temporary);
        session.kernel({.name = "flash_attention_backward",
                        .reads = {gradient, saved, sums, q, keys, values},
                        .writes = {q_back, keys_back, values_back, wide_back, row_sums},
                        .cost = {.kind = KernelClass::attention_backward,
                                 .type = options_.type,
                                 .attention = shape,
                                 .flops = flops(3 * shape.head_dim + 2 * shape.value_dim)}});
        Tensor expanded_back = make(name + ".expanded.grad", expanded_size);
        Tensor key_back = make(name + ".key.grad", key_size);
        session.kernel(
            {.name = "assemble_keys_backward", .reads = {keys_back, values_back}, .writes = {expanded_back, key_back}});
        return std::vector<Tensor>{std::move(q_back), std::move(expanded_back), std::move(key_back)};
      });
}

// Keys and values as tensors of their own, each with a gradient of its own.
std::vector<Tensor> LatentAttentionBlock::assembled(const std::string& name, const Tensor& expanded, const Tensor& key,
                                                    const AttentionShape& shape) {
  EagerSession& session = context_.session;
  const std::int64_t rows = shape.batch * shape.sequence * shape.heads;
  const std::int64_t expanded_size = expanded.elements(), key_size = key.elements();
  Tensor keys = make(name + ".keys", rows * shape.head_dim, TensorRole::activation);
  session.kernel(
      {.name = "assemble_keys", .reads = {expanded, key}, .writes = {keys}, .bytes = keys.bytes() + keys.bytes()});
  keys = context_.autograd.record(
      std::move(keys), {expanded, key}, false, [this, &session, name, expanded_size, key_size](const Tensor& gradient) {
        Tensor expanded_back = make(name + ".keys.expanded.grad", expanded_size);
        Tensor key_back = make(name + ".key.grad", key_size);
        session.kernel({.name = "assemble_keys_backward", .reads = {gradient}, .writes = {expanded_back, key_back}});
        return std::vector<Tensor>{std::move(expanded_back), std::move(key_back)};
      });
  Tensor values = make(name + ".values", rows * shape.value_dim, TensorRole::activation);
  session.kernel({.name = "copy", .reads = {expanded}, .writes = {values}, .bytes = values.bytes() + values.bytes()});
  values = context_.autograd.record(std::move(values), {expanded}, false,
                                    [this, &session, name, expanded_size](const Tensor& gradient) {
                                      Tensor back = make(name + ".values.expanded.grad", expanded_size);
                                      session.kernel({.name = "copy", .reads = {gradient}, .writes = {back}});
                                      return std::vector<Tensor>{std::move(back)};
                                    });
  return {keys, values};
}

Tensor LatentAttentionBlock::plain_core(const std::string& name, const Tensor& q, const std::vector<Tensor>& pair,
                                        const AttentionShape& shape) {
  const double dropout = setup_.dropout == model_.dropout ? model_.attention_dropout : setup_.dropout;
  const auto run = [this, name, shape, dropout](const std::vector<Tensor>& qkv) {
    return context_.ops.plain_attention(name, qkv, shape, dropout);
  };
  const std::vector<Tensor> qkv = {q, pair[0], pair[1]};
  return setup_.recompute == Recompute::selective ? context_.autograd.checkpoint(qkv, run, false) : run(qkv);
}

Tensor LatentAttentionBlock::run(const std::string& prefix, const Tensor& x, const Tensor& angles) {
  const std::string name = prefix + "attention";
  const Tensor q = queries(name, x, angles);
  Tensor down = linear(name + ".kv_down", x);
  const Tensor key = context_.ops.enter_tensor_region(name + ".key", shared_key(name + ".k_rotary", down, angles),
                                                      TensorRole::activation);
  Tensor latent = latent_norm(name + ".kv_latent_norm", down);
  down = {};
  const Tensor expanded = up(name + ".kv_up", latent);
  latent = {};
  return core(name + ".core", q, expanded, key);
}

}  // namespace spillway::models
