#include "models/network/sparse_index.h"

#include <algorithm>
#include <utility>
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"

namespace spillway::models {

std::int64_t SparseIndex::chosen() const { return std::min(model_.indexer.keys, setup_.sequence); }

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

Tensor SparseIndex::choose(const std::string& name, const Tensor& x, const Tensor& low) {
  if (!model_.has_indexer()) return {};
  const Indexer& indexer = model_.indexer;
  EagerSession& session = context_.session;
  const std::int64_t rows = x.elements() / model_.hidden, width = indexer.heads * indexer.head_dim;
  const std::int64_t seen = std::max<std::int64_t>(1, setup_.sequence / 2);  // keys of a row, in the mean
  const auto linear = [this, &name](const char* part, const Tensor& from) {
    return eager::linear(context_.rec, {name + part, &context_.weight(name + part)}, from.with_node(0));
  };
  const Tensor q = linear(".index_q", low);
  Tensor k = linear(".index_k", x);
  k = eager::norm(context_.rec, name + ".index_norm", k, context_.weight(name + ".index_norm"),
                  context_.bias(name + ".index_norm"));
  const Tensor weights = linear(".index_weights", x);
  session.kernel({.name = "rotary", .reads = {q, k}, .writes = {q, k}});
  Tensor keys = k;
  if (is_split())
    keys = context_.communication->all_gather(CommGroup::tensor, name + ".index_k", k, TensorRole::activation);
  Tensor scores = make(name + ".index_scores", DataType::fp32, rows * setup_.sequence);
  product("index_scores", {.m = rows, .n = seen, .k = width}, {q, keys, weights}, {scores});
  Tensor best = make(name + ".index_best", DataType::fp32, rows * chosen(), TensorRole::activation);
  const Tensor choice = make(name + ".index_choice", DataType::byte, 4 * rows * chosen(), TensorRole::activation);
  session.kernel({.name = "choose_keys", .reads = {scores}, .writes = {best, choice}});
  scores = {};
  Tensor everywhere = choice;  // attention's heads are split, its rows are not
  if (is_split())
    everywhere =
        context_.communication->all_gather(CommGroup::tensor, name + ".index_choice", choice, TensorRole::activation);
  const bool gathers = is_split();
  return context_.autograd.record(
      std::move(best), {q, k, weights}, false,
      [this, name, q, keys, weights, everywhere, rows, width, gathers](const Tensor& gradient) {
        Tensor q_back = make(name + ".index_q.grad", q.type(), q.elements());
        Tensor weights_back = make(name + ".index_weights.grad", weights.type(), weights.elements());
        Tensor k_back = make(name + ".index_k.grad", keys.type(), keys.elements());
        product("index_scores_backward", {.m = rows, .n = width, .k = chosen(), .batch = 2},
                {gradient, q, keys, weights, everywhere}, {q_back, k_back, weights_back});
        if (gathers)
          k_back = context_.communication->reduce_scatter(CommGroup::tensor, name + ".index_k.grad.part", k_back,
                                                          TensorRole::temporary);
        return std::vector<Tensor>{std::move(q_back), std::move(k_back), std::move(weights_back)};
      });
}

Tensor SparseIndex::learn(const std::string& name, Tensor result, const Tensor& scores) {
  if (!scores || scores.node() == 0) return result;
  const std::vector<Tensor> inputs = {result, scores};
  return context_.autograd.record(std::move(result), inputs, false, [this, name, scores](const Tensor& gradient) {
    const std::int64_t heads = model_.heads / setup_.tensor_parallel;
    Tensor targets = make(name + ".index_targets", DataType::fp32, setup_.tokens() * chosen());
    product("index_targets", {.m = setup_.tokens(), .n = chosen(), .k = heads * model_.head_dim}, {scores}, {targets});
    if (setup_.tensor_parallel > 1) context_.communication->all_reduce(CommGroup::tensor, "all_reduce", {targets});
    Tensor back = make(name + ".index_best.grad", DataType::fp32, scores.elements());
    context_.session.kernel({.name = "index_loss_backward", .reads = {scores, targets}, .writes = {back}});
    return std::vector<Tensor>{gradient, std::move(back)};
  });
}

}  // namespace spillway::models
