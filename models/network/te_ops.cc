// Layers of Transformer Engine 2.11 as Megatron-core 0.14 calls them,. What each keeps and frees, in the
// order in which its Python does: TransformerEngine c188b533, pytorch/module/layernorm_linear.py, linear.py,
// attention/dot_product_attention; Megatron-LM 23e00ed0, tensor_parallel/layers.py and cross_entropy.py.
#include <memory>
#include <utility>

#include "models/network/attention_size.h"
#include "models/network/eager_fp8.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/te_ops.h"

namespace spillway::models::eager {
namespace {

// Of heads that are normed before they are rotated: what came, and the norm's statistics.
struct NormedHeads {
  NormWeights weights;
  Tensor x, statistics;
};

struct Rotated {
  Tensor q, k, v, out, sums;
  Tensor exchanged;  // out as attention gave it, of whole sequences
  NormedHeads q_norm, k_norm;
};

Tensor gathered_operand(EagerRecorder& rec, const Linear& layer, const Tensor& part) {
  const Parameter& shape = layer.weight->shape;
  cut_up_gather(
      rec,
      {.rows = part.elements() / shape.columns * rec.tensor_ranks(), .inputs = shape.columns, .outputs = shape.rows});
  return rec.communication->all_gather(CommGroup::tensor, layer.name + ".in.whole", part, TensorRole::temporary);
}

// The norm's result as the product reads it; `kept`: what is saved of it.
Tensor norm_operand(EagerRecorder& rec, const NormedLinear& both, Tensor normed, Tensor& kept) {
  const std::string& name = both.linear.name;
  const bool parts = rec.tensor_ranks() > 1 && rec.setup.sequence_parallel;
  if (both.linear.weight->in_fp8 && !parts) {
    Narrowed narrowed = narrow(rec, name + ".in", normed, TensorRole::activation, nullptr);
    kept = std::move(narrowed.columns);
    return std::move(narrowed.rows);
  }
  kept =
      both.linear.weight->in_fp8 ? narrow_rows(rec, name + ".in", normed, TensorRole::activation) : std::move(normed);
  normed = {};
  return parts ? gathered_operand(rec, both.linear, kept) : kept;
}

void normed_product(EagerRecorder& rec, const Linear& layer, Tensor operand, const Tensor& out) {
  TrainedParameter& weight = *layer.weight;
  const std::int64_t inputs = weight.shape.columns, rows = operand.elements() / inputs;
  std::vector<Tensor> reads = {std::move(operand), weight.in_fp8 ? narrow_weight(rec, weight, false) : weight.value};
  if (layer.bias != nullptr) reads.push_back(layer.bias->value);
  product(rec, "gemm", {.m = rows, .n = weight.shape.rows, .k = inputs}, std::move(reads), out, {});
}

Tensor input_gradient(EagerRecorder& rec, const Linear& layer, std::int64_t rows, std::int64_t inputs,
                      SavedInput& saved, const Tensor& gradient) {
  if (!rec.autograd.is_deferring()) static_cast<void>(saved_for_weights(rec, layer.name, saved));
  Tensor whole = make(rec, layer.name + ".in.grad", rows * inputs, TensorRole::temporary);
  product(rec, "gemm_dgrad", {.m = rows, .n = inputs, .k = layer.weight->shape.rows, .layout = GemmLayout::nn},
          {gradient, layer.weight->in_fp8 ? narrow_weight(rec, *layer.weight, true) : layer.weight->value}, whole, {});
  return whole;
}

Tensor reduced_gradient(EagerRecorder& rec, const std::string& name, const Tensor& whole, bool parts) {
  if (parts)
    return rec.communication->reduce_scatter(CommGroup::tensor, name + ".in.grad.part", whole, TensorRole::temporary);
  if (rec.tensor_ranks() > 1) rec.communication->all_reduce(CommGroup::tensor, "all_reduce", {whole});
  return whole;
}

void weight_work(EagerRecorder& rec, const Linear& layer, const Tensor& gradient,
                 const std::shared_ptr<SavedInput>& saved) {
  if (layer.bias != nullptr && !layer.weight->in_fp8) sum_bias_gradient(rec, *layer.bias, gradient);
  rec.autograd.weight_work([&rec, layer, saved, gradient] {
    weight_gradient(rec, layer, gradient, saved_for_weights(rec, layer.name, *saved));
    saved->kept = saved->whole = {};
  });
}

std::vector<Tensor> norm_linear_backward(EagerRecorder& rec, const NormedLinear& both, const Tensor& x,
                                         const Tensor& statistics, const std::shared_ptr<SavedInput>& saved,
                                         const Tensor& gradient) {
  const Linear& layer = both.linear;
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  const std::int64_t rows = gradient.elements() / outputs;
  Narrowed incoming{.rows = gradient, .columns = gradient};
  if (layer.weight->in_fp8)
    incoming = narrow(rec, layer.name + ".out.grad", gradient, TensorRole::temporary, layer.bias);
  const Tensor whole = input_gradient(rec, layer, rows, inputs, *saved, incoming.rows);
  if (saved->parts) cut_up_scatter(rec, {.rows = rows, .inputs = outputs, .outputs = inputs});
  const Tensor part = reduced_gradient(rec, layer.name, whole, saved->parts);
  weight_work(rec, layer, incoming.columns, saved);
  incoming = {};
  const Maybe<std::int64_t>& multiprocessors = rec.session.cost().gpu().sm_count;  // a row of partial sums each
  Tensor x_gradient = norm_backward(rec, both.norm, x, statistics, {both.norm_weight, both.norm_bias}, part,
                                    multiprocessors ? multiprocessors->value : 1);
  use_dummy(rec, *layer.weight);
  return {std::move(x_gradient)};
}

// Through the context group, from parts of the sequence and all heads to whole sequences and some heads, or back. In
// the order of the library's pipeline of copies and exchanges; what comes out belongs to a stream of its own.
std::vector<Tensor> exchange_heads(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> sent, received, result;
  for (std::size_t i = 0; i < tensors.size() + 2; ++i) {
    if (i >= 1 && i <= tensors.size()) {
      received.push_back(
          rec.communication->all_to_all(CommGroup::context, name + ".received", sent[i - 1], TensorRole::temporary));
    }
    if (i >= 2) {
      rec.session.set_beside_memory(true);
      result.push_back(like(rec, name + ".exchanged", received[i - 2]));
      rec.session.set_beside_memory(false);
      rec.session.kernel({.name = "copy", .reads = {received[i - 2]}, .writes = {result.back()}});
      received[i - 2] = {};
    }
    if (i < tensors.size()) {
      sent.push_back(like(rec, name + ".sent", tensors[i], TensorRole::temporary));
      rec.session.kernel({.name = "copy", .reads = {tensors[i]}, .writes = {sent.back()}});
    }
  }
  return result;
}

// `x` itself without a norm. The norm takes no strided view: x is behind each other, and stays.
Tensor norm_heads(EagerRecorder& rec, const std::string& name, Tensor x, NormedHeads& heads) {
  const NormWeights& weights = heads.weights;
  if (weights.weight == nullptr) return x;
  heads.x = std::move(x);
  const std::int64_t rows = heads.x.elements() / weights.weight->shape.rows;
  heads.statistics = rec.session.empty(name + ".statistics", DataType::fp32, rows * (weights.bias != nullptr ? 2 : 1),
                                       TensorRole::activation);
  Tensor normed = like(rec, name + ".normed", heads.x, TensorRole::temporary);
  norm_forward(rec, heads.x, *weights.weight, weights.bias, {normed, heads.statistics});
  return normed;
}

Tensor run_core(EagerRecorder& rec, const std::string& name, Rotated& now, const AttentionShape& shape) {
  Tensor out = make(rec, name + ".context", query_elements(shape));
  now.sums = rec.session.empty(name + ".log_sum_exp", DataType::fp32, shape.batch * shape.heads * shape.sequence,
                               TensorRole::activation);
  rec.session.kernel({.name = "flash_attention",
                      .reads = {now.q, now.k, now.v},
                      .writes = {out, now.sums},
                      .cost = {.kind = KernelClass::attention_forward,
                               .type = rec.options.type,
                               .attention = shape,
                               .flops = flash_flops(shape, 2)}});
  return out;
}

// As the forward ran it, on what is saved.
void run_again(EagerRecorder& rec, const std::string& name, Rotated& now, const AttentionShape& shape, bool exchanged) {
  const Phase outer = rec.session.phase();
  rec.session.set_phase(Phase::recompute);
  (exchanged ? now.exchanged : now.out) = run_core(rec, name, now, shape);
  rec.session.set_phase(outer);
}

// Of the result, which is put in order before it is sent, or `forwards` false: of its gradient.
Tensor give_back_heads(EagerRecorder& rec, const std::string& name, const Tensor& x, bool forwards) {
  const Tensor ordered = like(rec, name + ".sent", x, TensorRole::temporary);
  rec.session.kernel({.name = "copy", .reads = {x}, .writes = {ordered}});
  const Tensor received =
      rec.communication->all_to_all(CommGroup::context, name + ".received", ordered, TensorRole::temporary);
  rec.session.set_beside_memory(true);
  Tensor out = like(rec, name + ".exchanged", x, forwards ? TensorRole::activation : TensorRole::temporary);
  rec.session.set_beside_memory(false);
  rec.session.kernel({.name = "copy", .reads = {received}, .writes = {out}});
  return out;
}

Tensor rotary_attention_backward(EagerRecorder& rec, const std::string& name, Rotated& now, const Tensor& angles,
                                 const AttentionShape& shape, Tensor gradient) {
  const bool exchanges = static_cast<bool>(now.exchanged);
  Tensor whole = exchanges ? give_back_heads(rec, name + ".grad", gradient, false) : gradient;
  Tensor q = make(rec, name + ".q.grad", query_elements(shape), TensorRole::temporary);
  Tensor k = make(rec, name + ".k.grad", key_elements(shape), TensorRole::temporary);
  Tensor v = make(rec, name + ".v.grad", key_elements(shape), TensorRole::temporary);
  rec.session.kernel({.name = "flash_attention_backward",
                      .reads = {whole, exchanges ? now.exchanged : now.out, now.sums, now.q, now.k, now.v},
                      .writes = {q, k, v},
                      .cost = {.kind = KernelClass::attention_backward,
                               .type = rec.options.type,
                               .attention = shape,
                               .flops = flash_flops(shape, 5)}});
  if (exchanges) {
    std::vector<Tensor> parts = exchange_heads(rec, name + ".grad", {q, k, v});
    q = std::move(parts[0]), k = std::move(parts[1]), v = std::move(parts[2]);
  }
  whole = gradient = {};
  NormedHeads q_norm = std::move(now.q_norm), k_norm = std::move(now.k_norm);
  now = {};
  const auto rotate_back = [&](const std::string& part, Tensor& rotated, NormedHeads& norm) {
    Tensor back = like(rec, name + part + ".unrotated.grad", rotated, TensorRole::temporary);
    rec.session.kernel({.name = "rotary_backward", .reads = {rotated, angles}, .writes = {back}});
    rotated = std::move(back);
    if (norm.weights.weight != nullptr)
      rotated = norm_backward(rec, name + part, norm.x, norm.statistics, norm.weights, rotated);
    norm = {};
  };
  rotate_back(".k", k, k_norm);
  rotate_back(".q", q, q_norm);
  Tensor mixed = make(rec, name + ".qkv.grad", q.elements() + k.elements() + v.elements(), TensorRole::temporary);
  rec.session.kernel({.name = "concatenate", .reads = {q, k, v}, .writes = {mixed}});
  return mixed;
}

}  // namespace

// A function's local names live until it returns: the whole gradient of the norm's result beside its part of the
// sequence, the incoming gradient beside both.
Tensor norm_linear(EagerRecorder& rec, const NormedLinear& both, const Tensor& x, Tensor* kept) {
  const bool parts = rec.tensor_ranks() > 1 && rec.setup.sequence_parallel;
  const std::string &norm = both.norm, &name = both.linear.name;
  const bool centred = both.norm_bias != nullptr;
  Tensor normed = like(rec, norm + ".out", x);
  const Tensor statistics =
      rec.session.empty(norm + ".statistics", DataType::fp32,
                        x.elements() / both.norm_weight->shape.rows * (centred ? 2 : 1), TensorRole::activation);
  norm_forward(rec, x, *both.norm_weight, both.norm_bias, {normed, statistics});
  const auto saved = std::make_shared<SavedInput>(SavedInput{.parts = parts});
  Tensor operand = norm_operand(rec, both, std::move(normed), saved->kept);
  if (kept != nullptr) *kept = saved->kept;
  const TrainedParameter& weight = *both.linear.weight;
  rec.workspaces->use_product();
  Tensor out = make(rec, name + ".out", operand.elements() / weight.shape.columns * weight.shape.rows);
  normed_product(rec, both.linear, std::move(operand), out);
  return rec.autograd.record(std::move(out), {x}, true, [&rec, both, x, statistics, saved](const Tensor& gradient) {
    return norm_linear_backward(rec, both, x, statistics, saved, gradient);
  });
}

// What was kept has its place again: the norm, or the cast behind it, writes there.
void norm_linear_again(EagerRecorder& rec, const NormedLinear& both, const Tensor& x, const Tensor& kept,
                       const Tensor& out) {
  const std::string& name = both.linear.name;
  const bool parts = rec.tensor_ranks() > 1 && rec.setup.sequence_parallel;
  if (!both.linear.weight->in_fp8) {
    norm_forward(rec, x, *both.norm_weight, both.norm_bias, {kept});
    return normed_product(rec, both.linear, parts ? gathered_operand(rec, both.linear, kept) : kept, out);
  }
  const Tensor normed = like(rec, both.norm + ".out", x, TensorRole::temporary);
  norm_forward(rec, x, *both.norm_weight, both.norm_bias, {normed});
  if (parts) {
    cast_rows(rec, name + ".in", normed, kept);
    return normed_product(rec, both.linear, gathered_operand(rec, both.linear, kept), out);
  }
  const Tensor rows = narrow_copy(rec, name + ".in", "", x.elements(), TensorRole::temporary);
  cast_both(rec, name + ".in", normed, rows, kept);
  normed_product(rec, both.linear, rows, out);
}

Tensor gather_heads(EagerRecorder& rec, const std::string& name, const Tensor& mixed) {
  const std::int64_t elements = mixed.elements() * rec.tensor_ranks();
  Tensor whole = make(rec, name + ".heads", elements, TensorRole::temporary);
  const Tensor gathered =
      rec.communication->all_gather(CommGroup::tensor, name + ".gathered", mixed, TensorRole::temporary);
  rec.session.kernel({.name = "concatenate", .reads = {gathered}, .writes = {whole}});
  return rec.autograd.record(std::move(whole), {mixed}, false, [&rec, name, elements](const Tensor& gradient) {
    Tensor all = make(rec, name + ".heads.grad", elements, TensorRole::temporary);
    rec.session.kernel({.name = "concatenate", .reads = {gradient}, .writes = {all}});
    return std::vector<Tensor>{
        rec.communication->reduce_scatter(CommGroup::tensor, name + ".grad.part", all, TensorRole::temporary)};
  });
}

// Queries and keys are rotated into tensors of their own, and values copied behind each other, since the library's
// attention doesn't take the strided view. With several key heads the view of the queries is copied first.
Tensor rotary_attention(EagerRecorder& rec, const std::string& name, const Tensor& mixed, const Tensor& angles,
                        const AttentionShape& local, const RotaryOptions& options) {
  const bool exchanges = options.exchanges, recomputes = options.recomputes;
  const std::int64_t queries = query_elements(local), keys = key_elements(local);
  AttentionShape shape = local;
  const auto now = std::make_shared<Rotated>();
  now->q_norm.weights = options.q_norm, now->k_norm.weights = options.k_norm;
  const auto copy = [&](const char* part, std::int64_t elements, TensorRole role) {
    Tensor behind = make(rec, name + part, elements, role);
    rec.session.kernel(
        {.name = "copy", .reads = {mixed}, .writes = {behind}, .bytes = behind.bytes() + behind.bytes()});
    return behind.with_node(mixed.node());
  };
  const bool norms = options.q_norm.weight != nullptr;
  const TensorRole kept_by_norm = norms ? TensorRole::activation : TensorRole::temporary;
  {
    Tensor view = norms || local.kv_heads > 1 ? copy(".q.copy", queries, kept_by_norm) : mixed;
    view = norm_heads(rec, name + ".q", std::move(view), now->q_norm);
    now->q = make(rec, name + ".q", queries);
    rec.session.kernel(
        {.name = "rotary", .reads = {view, angles}, .writes = {now->q}, .bytes = now->q.bytes() + now->q.bytes()});
  }
  {
    Tensor view = norms ? copy(".k.copy", keys, kept_by_norm) : mixed;
    view = norm_heads(rec, name + ".k", std::move(view), now->k_norm);
    now->k = make(rec, name + ".k", keys);
    rec.session.kernel(
        {.name = "rotary", .reads = {view, angles}, .writes = {now->k}, .bytes = now->k.bytes() + now->k.bytes()});
  }
  now->v = copy(".v", keys, TensorRole::activation);
  std::vector<Tensor> own;  // of this rank's part, until the function returns
  if (exchanges) {
    const std::int64_t ranks = rec.communication->shape(CommGroup::context).ranks;
    shape.heads /= ranks, shape.kv_heads /= ranks, shape.sequence *= ranks;
    own = {now->q, now->k, now->v};
    std::vector<Tensor> whole = exchange_heads(rec, name, own);
    now->q = std::move(whole[0]), now->k = std::move(whole[1]), now->v = std::move(whole[2]);
  }
  Tensor out = now->out = run_core(rec, name, *now, shape);
  if (exchanges) {
    now->exchanged = std::move(now->out);
    now->out = out = give_back_heads(rec, name + ".context", now->exchanged, true);
    own.clear();
  }
  if (recomputes) now->out = now->exchanged = now->sums = {};
  return rec.autograd.record(std::move(out), {mixed}, false, [=, &rec](Tensor gradient) {
    if (recomputes) run_again(rec, name, *now, shape, exchanges);
    return std::vector<Tensor>{rotary_attention_backward(rec, name, *now, angles, shape, std::move(gradient))};
  });
}

// Its input is gathered into a buffer that stays, and everything of its backward is one function.
Tensor head(EagerRecorder& rec, const Linear& layer, const Tensor& x) {
  const bool parts = rec.tensor_ranks() > 1 && rec.setup.sequence_parallel;
  const auto gathered = [&rec, name = layer.name](const Tensor& part) {
    const Tensor whole = rec.workspaces->gathered();
    rec.workspaces->use_gathered();
    rec.communication->gather_into(CommGroup::tensor, "all_gather", {part}, {whole}, whole.bytes());
    return whole;
  };
  const Tensor operand = parts ? gathered(x) : x;
  const std::int64_t inputs = layer.weight->shape.columns, outputs = layer.weight->shape.rows;
  const std::int64_t rows = operand.elements() / inputs;
  rec.workspaces->use_head(false);
  Tensor out = make(rec, layer.name + ".out", rows * outputs);
  std::vector<Tensor> reads = {operand, layer.weight->value};
  if (layer.bias != nullptr) reads.push_back(layer.bias->value);
  product(rec, "gemm", {.m = rows, .n = outputs, .k = inputs}, std::move(reads), out, {});
  return rec.autograd.record(std::move(out), {x}, true, [=, &rec](const Tensor& gradient) {
    rec.workspaces->use_head(true);
    const auto saved = std::make_shared<SavedInput>(SavedInput{.kept = parts ? gathered(x) : x});
    const Tensor whole = input_gradient(rec, layer, rows, inputs, *saved, gradient);
    const Tensor part = reduced_gradient(rec, layer.name, whole, parts);
    weight_work(rec, layer, gradient, saved);
    use_dummy(rec, *layer.weight);
    return std::vector<Tensor>{part};
  });
}

// Transformer Engine's: a few numbers per row, and the gradient takes the logits' place.
Tensor cross_entropy_in_place(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements(), ranks = rec.tensor_ranks();
  const auto numbers = [&](const char* part, std::int64_t each) {
    return rec.session.empty(name + part, DataType::fp32, rows * each, TensorRole::temporary);
  };
  const Tensor losses = rec.session.empty(name + ".rows", DataType::fp32, rows, TensorRole::activation);
  {
    const Tensor own = numbers(".own", 3);
    rec.session.kernel({.name = "online_softmax",
                        .reads = {logits, labels},
                        .writes = {own},
                        .cost = {.memory = MemoryKind::softmax}});
    Tensor all = own;
    if (ranks > 1) {
      all = numbers(".of_all", 3 * ranks);
      rec.communication->gather_into(CommGroup::tensor, "all_gather", {own}, {all}, all.bytes());
    }
    rec.session.kernel({.name = "cross_entropy",
                        .reads = {logits, labels, all},
                        .writes = {losses, logits},
                        .cost = {.memory = MemoryKind::softmax}});
  }
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  rec.session.kernel({.name = "mean", .reads = {losses}, .writes = {loss}});
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    rec.session.kernel({.name = "scale_", .reads = {logits, gradient}, .writes = {logits}});
    return std::vector<Tensor>{logits};
  });
}

// Megatron-core's own (fused by a compiler or not): in fp32, in the place of the copy that it makes of the logits.
Tensor cross_entropy_of_copy(EagerRecorder& rec, const std::string& name, Tensor logits, const Tensor& labels) {
  const std::int64_t rows = labels.elements();
  const Bytes picked = labels.bytes() + Bytes(rows * 8);
  const auto sum_over_ranks = [&rec](const Tensor& x) {
    if (rec.communication != nullptr) rec.communication->all_reduce(CommGroup::tensor, "all_reduce", {x});
  };
  const std::uint32_t node = logits.node();
  const Tensor softmax =
      rec.session.empty(name + ".softmax", DataType::fp32, logits.elements(), TensorRole::activation);
  rec.session.kernel({.name = "cast", .reads = {logits}, .writes = {softmax}});
  const Tensor most = temporary(rec, name + ".row_max", DataType::fp32, rows);
  rec.session.kernel({.name = "row_max", .reads = {softmax}, .writes = {most}});
  sum_over_ranks(most);
  rec.session.kernel({.name = "subtract_", .reads = {softmax, most}, .writes = {softmax}});
  const Tensor masked = rec.session.empty(name + ".mask", DataType::byte, rows, TensorRole::activation);
  const Tensor targets = rec.session.empty(name + ".targets", DataType::int64, rows, TensorRole::activation);
  const Tensor predicted = temporary(rec, name + ".predicted", DataType::fp32, rows);
  rec.session.kernel(
      {.name = "pick", .reads = {softmax, labels}, .writes = {predicted, masked, targets}, .bytes = picked});
  sum_over_ranks(predicted);
  const Tensor sums = temporary(rec, name + ".row_sum", DataType::fp32, rows);
  rec.session.kernel({.name = "exp_sum_", .reads = {softmax}, .writes = {softmax, sums}});
  sum_over_ranks(sums);
  rec.session.kernel({.name = "divide_", .reads = {softmax, sums}, .writes = {softmax}});
  Tensor loss = rec.session.empty(name, DataType::fp32, 1, TensorRole::activation);
  rec.session.kernel({.name = "log_mean", .reads = {sums, predicted}, .writes = {loss}});
  logits = Tensor().with_node(node);
  return rec.autograd.record(std::move(loss), {logits}, false, [=, &rec](const Tensor& gradient) {
    rec.session.kernel({.name = "subtract_one_", .reads = {targets, masked}, .writes = {softmax}, .bytes = picked});
    rec.session.kernel({.name = "scale_", .reads = {softmax, gradient}, .writes = {softmax}});
    return std::vector<Tensor>{cast(rec, name + ".logits.grad", softmax, rec.options.type)};
  });
}

}  // namespace spillway::models::eager
