#include "models/network/mla_attention.h"

#include <memory>
#include <utility>
#include "models/network/eager_attention.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/te_ops.h"

namespace spillway::models {

Tensor LatentAttentionBlock::make(const std::string& name, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, options_.type, elements, role);
}

Tensor LatentAttentionBlock::linear(const std::string& name, const Tensor& x) {
  return eager::linear(context_.rec, {name, &context_.weight(name), nullptr, setup_.recomputes_module("layernorm")}, x);
}

// Split by heads; x is whole, or this rank's part of the sequence.
Tensor LatentAttentionBlock::up(const std::string& name, const Tensor& x) {
  return eager::column_linears(context_.rec, {{name, &context_.weight(name), nullptr}}, x)[0];
}

Tensor LatentAttentionBlock::queries(const std::string& name, const Tensor& x, const Tensor& angles, Tensor& low) {
  Tensor q;
  if (model_.latent.query_rank > 0) {
    q = linear(name + ".q_down", x);
    q = eager::norm(context_.rec, name + ".q_latent_norm", q, context_.weight(name + ".q_latent_norm"), nullptr);
    low = q;
    q = up(name + ".q_up", q);
  } else {
    q = up(name + ".q", x);
  }
  return eager::rotary(context_.rec, name + ".q_rotary", q, angles);
}

// RMSNorm of the first kv_rank elements of each row; its gradient leaves the rest of the row 0.
Tensor LatentAttentionBlock::latent_norm(const std::string& name, const Tensor& down) {
  EagerSession& session = context_.session;
  TrainedParameter& weight = context_.weight(name);
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

std::int64_t LatentAttentionBlock::window() const {
  return model_.has_indexer() && model_.indexer.keys < setup_.sequence ? model_.indexer.keys : 0;
}

// Of products of `width` over the pairs that attention sees, this rank's heads.
Flops LatentAttentionBlock::core_flops(std::int64_t width) const {
  const std::int64_t s = setup_.document(), w = window(), pairs = w > 0 ? w * (2 * s - w) : s * s;
  return Flops(setup_.micro_batch * setup_.documents() * local_heads() * pairs * width);
}

Tensor LatentAttentionBlock::core(const std::string& name, const Tensor& q, const Tensor& expanded, const Tensor& key) {
  EagerSession& session = context_.session;
  const LatentAttention& latent = model_.latent;
  const std::int64_t heads = model_.heads / setup_.tensor_parallel;
  const std::int64_t rows = setup_.tokens() * heads, wide = model_.head_dim, narrow = latent.value_dim;
  const AttentionShape shape{.batch = setup_.micro_batch * setup_.documents(),
                             .heads = heads,
                             .kv_heads = heads,
                             .sequence = setup_.document(),
                             .head_dim = wide,
                             .value_dim = narrow,
                             .window = window()};
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
                           .flops = core_flops(wide + narrow)}});
  const Tensor saved = out;
  const std::int64_t expanded_size = expanded.elements(), key_size = key.elements();
  return context_.autograd.record(
      std::move(out), {q, expanded, key}, false,
      [this, &session, name, shape, q, keys, values, saved, sums, expanded_size, key_size](const Tensor& gradient) {
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
                                 .flops = core_flops(3 * shape.head_dim + 2 * shape.value_dim)}});
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
    return eager::plain_attention(context_.rec, name, qkv, shape, dropout);
  };
  const std::vector<Tensor> qkv = {q, pair[0], pair[1]};
  return setup_.recomputes_module("core_attn") ? context_.autograd.checkpoint(qkv, run, false) : run(qkv);
}

bool LatentAttentionBlock::has_engine() const {
  return context_.rec.workspaces != nullptr && setup_.flash_attention && setup_.trains_all();
}

// In place, rope_dim of each head.
void LatentAttentionBlock::rotate_queries(const Tensor& q, const Tensor& angles) {
  context_.session.kernel({.name = "rotary",
                           .reads = {q, angles},
                           .writes = {q},
                           .bytes = q.bytes() / model_.head_dim * model_.latent.rope_dim * 2});
}

void LatentAttentionBlock::assemble(const EngineSaved& saved, const Tensor& expanded, const Tensor& key,
                                    const Tensor& angles) {
  context_.session.kernel({.name = "assemble_keys",
                           .reads = {expanded, key, angles},
                           .writes = {saved.k, saved.v},
                           .bytes = saved.k.bytes() + saved.k.bytes() + saved.v.bytes() + saved.v.bytes()});
}

// The bottlenecks' norms and what is behind them are one function each; the shared key goes into the keys as it is,
// gathered from all parts of the sequence first. Each rank's heads give it a gradient of their own.
Tensor LatentAttentionBlock::engine_run(const std::string& prefix, const Tensor& x, const Tensor& angles) {
  EagerSession& session = context_.session;
  EagerRecorder& rec = context_.rec;
  const std::string name = prefix + "attention";
  const LatentAttention& latent = model_.latent;
  const std::int64_t tokens = setup_.tokens(), heads = local_heads();
  const auto saved = std::make_shared<EngineSaved>();
  if (latent.query_rank > 0) saved->low = linear(name + ".q_down", x);
  Tensor down = linear(name + ".kv_down", x);
  const Tensor q = saved->low
                       ? eager::norm_linear(rec, normed(name, ".q_latent_norm", ".q_up"), saved->low, &saved->q_normed)
                       : up(name + ".q", x);
  const Tensor scores = model_.has_indexer() ? index_.choose(name, x, wide_bottleneck(name, *saved)) : Tensor();
  rotate_queries(q, angles);
  // The shared key's gradient, which comes with that of the latent.
  const auto slot = std::make_shared<Tensor>();
  const std::int64_t width = latent.kv_rank + latent.rope_dim;
  Tensor compressed = make(name + ".kv_latent", down.elements() / width * latent.kv_rank, TensorRole::activation);
  session.kernel(
      {.name = "copy", .reads = {down}, .writes = {compressed}, .bytes = compressed.bytes() + compressed.bytes()});
  compressed =
      context_.autograd.record(std::move(compressed), {down}, false,
                               [this, &session, name, slot, whole = down.elements()](const Tensor& gradient) {
                                 *slot = key_gradient(name, *slot);
                                 Tensor back = make(name + ".kv_down.out.grad", whole);
                                 session.kernel({.name = "concatenate", .reads = {gradient, *slot}, .writes = {back}});
                                 *slot = {};
                                 return std::vector<Tensor>{std::move(back)};
                               });
  Tensor expanded = eager::norm_linear(rec, normed(name, ".kv_latent_norm", ".kv_up"), compressed, &saved->kv_normed);
  saved->compressed = std::move(compressed);
  const std::uint32_t expanded_node = expanded.node();
  Tensor key = down;
  if (gathers_key()) {
    const Tensor part = make(name + ".key.part", down.elements() / width * latent.rope_dim);
    session.kernel({.name = "copy", .reads = {down}, .writes = {part}, .bytes = part.bytes() + part.bytes()});
    key = context_.communication->all_gather(CommGroup::tensor, name + ".key", part, TensorRole::activation);
  }
  saved->q = q;
  saved->k = make(name + ".k", tokens * heads * model_.head_dim, TensorRole::activation);
  saved->v = make(name + ".v", tokens * heads * latent.value_dim, TensorRole::activation);
  assemble(*saved, expanded, key, angles);
  const std::int64_t expanded_size = expanded.elements();
  if (setup_.recomputes_module("mla_up_proj"))
    saved->key = std::move(key);
  else
    saved->low = saved->compressed = saved->q_normed = saved->kv_normed = {};
  key = down = {};
  expanded = Tensor().with_node(expanded_node);
  return index_.learn(name, engine_core(name, expanded, expanded_size, angles, saved, slot), scores);
}

// The queries' bottleneck, normed, as the indexer reads it: what is kept of it in fp8 is for the weight gradient alone.
Tensor LatentAttentionBlock::wide_bottleneck(const std::string& name, const EngineSaved& saved) {
  if (saved.q_normed && !is_narrow(saved.q_normed.type())) return saved.q_normed;
  const std::string norm = name + ".q_latent_norm";
  Tensor wide = make(norm + ".wide", saved.low.elements(), TensorRole::activation);
  eager::norm_forward(context_.rec, saved.low, context_.weight(norm), nullptr, {wide});
  return wide;
}

eager::NormedLinear LatentAttentionBlock::normed(const std::string& name, const char* norm, const char* layer) {
  return {name + norm, &context_.weight(name + norm), nullptr, {name + layer, &context_.weight(name + layer), nullptr}};
}

// What the up-projections make goes once attention has read it.
void LatentAttentionBlock::discard_projections(EngineSaved& saved) {
  for (const Tensor* each : {&saved.k, &saved.v, &saved.kv_normed}) context_.session.discard(*each);
  if (!saved.low) return;
  context_.session.discard(saved.q);
  context_.session.discard(saved.q_normed);
}

void LatentAttentionBlock::project_again(const std::string& name, EngineSaved& saved, const Tensor& angles) {
  EagerSession& session = context_.session;
  const Phase outer = session.phase();
  session.set_phase(Phase::recompute);
  if (saved.low) {
    session.restore(saved.q_normed, name + ".q_latent_norm.out");
    session.restore(saved.q, name + ".q_up.out");
    eager::norm_linear_again(context_.rec, normed(name, ".q_latent_norm", ".q_up"), saved.low, saved.q_normed, saved.q);
    rotate_queries(saved.q, angles);
  }
  session.restore(saved.kv_normed, name + ".kv_latent_norm.out");
  const std::int64_t width = model_.latent.nope_dim + model_.latent.value_dim;
  const Tensor expanded = make(name + ".kv_up.again", setup_.tokens() * local_heads() * width);
  eager::norm_linear_again(context_.rec, normed(name, ".kv_latent_norm", ".kv_up"), saved.compressed, saved.kv_normed,
                           expanded);
  session.restore(saved.k, name + ".k");
  session.restore(saved.v, name + ".v");
  assemble(saved, expanded, saved.key, angles);
  session.set_phase(outer);
}

// Of the whole sequence and this rank's heads, to this rank's part of the sequence, or the whole, and all heads.
Tensor LatentAttentionBlock::key_gradient(const std::string& name, const Tensor& whole) {
  if (gathers_key())
    return context_.communication->reduce_scatter(CommGroup::tensor, name + ".key.grad.part", whole,
                                                  TensorRole::temporary);
  if (setup_.tensor_parallel > 1) context_.communication->all_reduce(CommGroup::tensor, "all_reduce", {whole});
  return whole;
}

AttentionShape LatentAttentionBlock::engine_shape() const {
  return {.batch = setup_.micro_batch * setup_.documents(),
          .heads = local_heads(),
          .kv_heads = local_heads(),
          .sequence = setup_.document(),
          .head_dim = model_.head_dim,
          .value_dim = model_.latent.value_dim,
          .window = window()};
}

Tensor LatentAttentionBlock::engine_forward(const std::string& name, EngineSaved& saved) {
  const AttentionShape shape = engine_shape();
  const std::int64_t rows = setup_.tokens() * shape.heads;
  Tensor out = make(name + ".context", rows * shape.value_dim, TensorRole::activation);
  saved.sums = context_.session.empty(name + ".log_sum_exp", DataType::fp32, rows, TensorRole::activation);
  context_.session.kernel({.name = "flash_attention",
                           .reads = {saved.q, saved.k, saved.v},
                           .writes = {out, saved.sums},
                           .cost = {.kind = KernelClass::attention_forward,
                                    .type = options_.type,
                                    .attention = shape,
                                    .flops = core_flops(shape.head_dim + shape.value_dim)}});
  return out;
}

Tensor LatentAttentionBlock::engine_core(const std::string& name, const Tensor& expanded, std::int64_t expanded_size,
                                         const Tensor& angles, const std::shared_ptr<EngineSaved>& saved,
                                         const std::shared_ptr<Tensor>& slot) {
  EagerSession& session = context_.session;
  Tensor out = engine_forward(name, *saved);
  const bool attends_again = setup_.recomputes_module("core_attn");
  if (attends_again)
    saved->sums = {};
  else
    saved->out = out;
  const Tensor q = Tensor().with_node(saved->q.node());
  const bool again = static_cast<bool>(saved->key) && context_.autograd.is_recording();
  if (again) discard_projections(*saved);
  return context_.autograd.record(
      std::move(out), {q, expanded}, false,
      [this, &session, name, expanded_size, angles, saved, slot, again, attends_again](Tensor gradient) {
        if (again) project_again(name, *saved, angles);
        if (attends_again) {
          const Phase outer = session.phase();
          session.set_phase(Phase::recompute);
          saved->out = engine_forward(name, *saved);
          session.set_phase(outer);
        }
        const AttentionShape shape = engine_shape();
        Tensor q_back = make(name + ".q.grad", saved->q.elements());
        Tensor k_back = make(name + ".k.grad", saved->k.elements());
        Tensor v_back = make(name + ".v.grad", saved->v.elements());
        session.kernel({.name = "flash_attention_backward",
                        .reads = {gradient, saved->out, saved->sums, saved->q, saved->k, saved->v},
                        .writes = {q_back, k_back, v_back},
                        .cost = {.kind = KernelClass::attention_backward,
                                 .type = options_.type,
                                 .attention = shape,
                                 .flops = core_flops(3 * shape.head_dim + 2 * shape.value_dim)}});
        gradient = {};
        *saved = {};
        session.kernel({.name = "rotary_backward", .reads = {q_back, angles}, .writes = {q_back}});
        Tensor expanded_back = make(name + ".kv_up.out.grad", expanded_size);
        *slot = make(name + ".key.grad", setup_.tokens() * model_.latent.rope_dim);
        session.kernel({.name = "assemble_keys_backward", .reads = {k_back, v_back}, .writes = {expanded_back, *slot}});
        return std::vector<Tensor>{std::move(q_back), std::move(expanded_back)};
      });
}

Tensor LatentAttentionBlock::run(const std::string& prefix, const Tensor& x, const Tensor& angles) {
  if (has_engine()) return engine_run(prefix, x, angles);
  const bool recomputes = setup_.flash_attention && setup_.recomputes_module("core_attn");
  const std::string name = prefix + "attention";
  Tensor low;
  const Tensor q = queries(name, x, angles, low);
  const Tensor scores = index_.choose(name, x, low);
  low = {};
  Tensor down = linear(name + ".kv_down", x);
  const Tensor key = eager::enter_tensor_region(context_.rec, name + ".key",
                                                shared_key(name + ".k_rotary", down, angles), TensorRole::activation);
  Tensor latent = latent_norm(name + ".kv_latent_norm", down);
  down = {};
  const Tensor expanded = up(name + ".kv_up", latent);
  latent = {};
  if (!recomputes) return index_.learn(name, core(name + ".core", q, expanded, key), scores);
  const auto run_core = [this, name](const std::vector<Tensor>& again) {
    return core(name + ".core", again[0], again[1], again[2]);
  };
  return index_.learn(name, context_.autograd.checkpoint({q, expanded, key}, run_core, false), scores);
}

}  // namespace spillway::models
