#include "models/network/sparse_index.h"

#include <algorithm>
#include <utility>
#include "models/network/compressed_keys.h"
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models {

std::int64_t SparseIndex::chosen_of(std::int64_t keys) const { return std::min(model_.indexer.keys, keys); }

std::int64_t SparseIndex::choices(std::int64_t compression) const {
  const std::int64_t keys = std::max<std::int64_t>(1, setup_.sequence / std::max<std::int64_t>(1, compression)),
                     each = std::max<std::int64_t>(1, model_.indexer.block);
  return (chosen_of(keys) + each - 1) / each;
}

Tensor SparseIndex::make(const std::string& name, DataType type, std::int64_t elements, TensorRole role) {
  return context_.session.empty(name, type, elements, role);
}

void SparseIndex::product(std::string_view name, const GemmShape& shape, std::vector<Tensor> reads,
                          std::vector<Tensor> writes) {
  const KernelCost cost{.kind = KernelClass::gemm,
                        .type = options_.product,
                        .gemm = shape,
                        .flops = Flops(2 * shape.batch * shape.m * shape.n * shape.k)};
  context_.session.kernel({.name = name, .reads = std::move(reads), .writes = std::move(writes), .cost = cost});
}

Tensor SparseIndex::choose(const std::string& name, const Tensor& x, const Tensor& low, const Block& block) {
  if (!model_.has_indexer()) return {};
  const Indexer& indexer = model_.indexer;
  EagerSession& session = context_.session;
  const std::int64_t rows = x.elements() / model_.hidden, width = indexer.heads * indexer.head_dim;
  const std::int64_t keys_of_all =
      std::max<std::int64_t>(1, setup_.sequence / std::max<std::int64_t>(1, block.compression));
  const std::int64_t seen = std::max<std::int64_t>(1, keys_of_all / 2);  // of a row, in the mean
  const std::int64_t best_of = choices(block.compression);
  const auto linear = [this, &name](const char* part, const Tensor& from) {
    return eager::linear(context_.rec, {name + part, &context_.weight(name + part)}, from.with_node(0));
  };
  const auto normed = [this, &name](const char* part, const Tensor& of) {
    return eager::norm(context_.rec, name + part, of, context_.weight(name + part), context_.bias(name + part));
  };
  Tensor q = linear(".index_q", low ? low : x);
  if (indexer.block > 0) q = normed(".index_q_norm", q);
  const Tensor k = block.compression > 0
                       ? compressed_keys(context_, name + ".index", x.with_node(0), block, indexer.head_dim)
                       : normed(".index_norm", linear(".index_k", x));
  const Tensor weights = indexer.block > 0 ? Tensor() : linear(".index_weights", x);
  session.kernel({.name = "rotary", .reads = {q, k}, .writes = {q, k}});
  Tensor keys = k;
  if (is_split())
    keys = context_.communication->all_gather(CommGroup::tensor, name + ".index_k", k, TensorRole::activation);
  const auto with_weights = [weights](std::vector<Tensor> list) {
    if (weights) list.push_back(weights);
    return list;
  };
  Tensor scores = make(name + ".index_scores", DataType::fp32, rows * keys_of_all);
  product("index_scores", {.m = rows, .n = seen, .k = width}, with_weights({q, keys}), {scores});
  Tensor best = make(name + ".index_best", DataType::fp32, rows * best_of, TensorRole::activation);
  const Tensor choice = make(name + ".index_choice", DataType::byte, 4 * rows * best_of, TensorRole::activation);
  session.kernel({.name = "choose_keys", .reads = {scores}, .writes = {best, choice}});
  scores = {};
  Tensor everywhere = choice;  // attention's heads are split, its rows are not
  if (is_split())
    everywhere =
        context_.communication->all_gather(CommGroup::tensor, name + ".index_choice", choice, TensorRole::activation);
  const bool gathers = is_split();
  return context_.autograd.record(
      std::move(best), with_weights({q, k}), false,
      [this, name, q, keys, weights, with_weights, everywhere, rows, width, gathers, best_of](const Tensor& gradient) {
        Tensor q_back = make(name + ".index_q.grad", q.type(), q.elements());
        Tensor weights_back;
        if (weights) weights_back = make(name + ".index_weights.grad", weights.type(), weights.elements());
        Tensor k_back = make(name + ".index_k.grad", keys.type(), keys.elements());
        std::vector<Tensor> reads = with_weights({gradient, q, keys}), writes = {q_back, k_back};
        reads.push_back(everywhere);
        if (weights_back) writes.push_back(weights_back);
        product("index_scores_backward", {.m = rows, .n = width, .k = best_of, .batch = 2}, std::move(reads),
                std::move(writes));
        if (gathers)
          k_back = context_.communication->reduce_scatter(CommGroup::tensor, name + ".index_k.grad.part", k_back,
                                                          TensorRole::temporary);
        std::vector<Tensor> gradients = {std::move(q_back), std::move(k_back)};
        if (weights_back) gradients.push_back(std::move(weights_back));
        return gradients;
      });
}

Tensor SparseIndex::learn(const std::string& name, Tensor result, const Tensor& scores) {
  if (!scores || scores.node() == 0) return result;
  const std::vector<Tensor> inputs = {result, scores};
  return context_.autograd.record(std::move(result), inputs, false, [this, name, scores](const Tensor& gradient) {
    const std::int64_t heads = model_.heads / setup_.tensor_parallel;
    const std::int64_t best_of = scores.elements() * (is_split() ? setup_.tensor_parallel : 1) / setup_.tokens(),
                       keys = best_of * std::max<std::int64_t>(1, model_.indexer.block);
    Tensor targets = make(name + ".index_targets", DataType::fp32, setup_.tokens() * best_of);
    product("index_targets", {.m = setup_.tokens(), .n = keys, .k = heads * model_.head_dim}, {scores}, {targets});
    if (setup_.tensor_parallel > 1) context_.communication->all_reduce(CommGroup::tensor, "all_reduce", {targets});
    Tensor back = make(name + ".index_best.grad", DataType::fp32, scores.elements());
    context_.session.kernel({.name = "index_loss_backward", .reads = {scores, targets}, .writes = {back}});
    return std::vector<Tensor>{gradient, std::move(back)};
  });
}

}  // namespace spillway::models
