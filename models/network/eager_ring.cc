// Ring attention: the sequence is split over the context group.
#include <utility>

#include "base/input_error.h"
#include "models/network/attention_size.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

struct Ring {
  AttentionShape shape;
  std::vector<Tensor> qkv;  // one packed or three
  Tensor out, statistics;
  std::int64_t turns = 1;

  [[nodiscard]] std::int64_t query_elements() const {
    return shape.batch * shape.sequence * shape.heads * shape.head_dim;
  }
  [[nodiscard]] std::int64_t pair_elements() const {  // keys and values
    return 2 * shape.batch * shape.sequence * shape.kv_heads * shape.head_dim;
  }
  // Of one turn: all queries of this rank against one rank's keys. With a causal mask the whole ring does half the
  // square, this rank 1 / turns of that in each of its turns.
  [[nodiscard]] Flops flops(std::int64_t products) const {
    const std::int64_t one = 2 * shape.batch * shape.heads * shape.sequence * shape.sequence * shape.head_dim;
    return Flops(products * one / (shape.causal ? 2 : 1));
  }
};

// Keys and values go round once more, each followed by its gradient, which is complete when it is back home.
std::vector<Tensor> ring_backward(EagerRecorder& rec, const std::string& name, const Ring& ring,
                                  const Tensor& gradient) {
  const Tensor q_gradient = make(rec, name + ".q.grad", ring.query_elements(), TensorRole::temporary);
  const Tensor sums = temporary(rec, name + ".q.grad_fp32", DataType::fp32, ring.query_elements());
  Tensor pair, pair_gradient = temporary(rec, name + ".kv.grad_fp32", DataType::fp32, ring.pair_elements());
  for (std::int64_t turn = 0; turn < ring.turns; ++turn) {
    const Tensor now = pair;
    if (turn + 1 < ring.turns) {
      pair = make(rec, name + ".kv.next", ring.pair_elements(), TensorRole::temporary);
      rec.communication->shift(CommGroup::context, "ring_exchange", now ? now : ring.qkv.back(), pair);
    }
    std::vector<Tensor> reads = {gradient, ring.out, ring.statistics};
    reads.insert(reads.end(), ring.qkv.begin(), now ? ring.qkv.begin() + 1 : ring.qkv.end());
    if (now) reads.push_back(now);
    rec.session.kernel({.name = "flash_attention_backward",
                        .reads = std::move(reads),
                        .writes = {sums, pair_gradient},
                        .cost = {.kind = KernelClass::attention_backward,
                                 .type = rec.options.type,
                                 .attention = shape_of_turn(ring.shape, turn),
                                 .flops = ring.flops(5)}});
    const Tensor moved = temporary(rec, name + ".kv.grad_fp32", DataType::fp32, ring.pair_elements());
    rec.communication->shift(CommGroup::context, "ring_exchange", pair_gradient, moved);
    pair_gradient = moved;
  }
  rec.session.kernel({.name = "cast", .reads = {sums}, .writes = {q_gradient}});
  const Tensor k_gradient = make(rec, name + ".k.grad", ring.pair_elements() / 2, TensorRole::temporary);
  const Tensor v_gradient = make(rec, name + ".v.grad", ring.pair_elements() / 2, TensorRole::temporary);
  rec.session.kernel({.name = "cast", .reads = {pair_gradient}, .writes = {k_gradient, v_gradient}});
  return join_gradients(rec, name, ring.qkv, {q_gradient, k_gradient, v_gradient});
}

}  // namespace

Tensor ring_attention(EagerRecorder& rec, const std::string& name, const std::vector<Tensor>& qkv,
                      const AttentionShape& shape) {
  SPILLWAY_ASSERT(rec.communication != nullptr);
  Ring ring{.shape = shape, .qkv = qkv, .turns = rec.communication->shape(CommGroup::context).ranks};
  ring.out = make(rec, name + ".context", ring.query_elements());
  ring.statistics = rec.session.empty(name + ".log_sum_exp", DataType::fp32, shape.batch * shape.heads * shape.sequence,
                                      TensorRole::activation);
  Tensor pair;  // the keys and values that came last
  for (std::int64_t turn = 0; turn < ring.turns; ++turn) {
    const Tensor now = pair;
    if (turn + 1 < ring.turns) {
      pair = make(rec, name + ".kv.next", ring.pair_elements(), TensorRole::temporary);
      Tensor sent = now;
      if (turn == 0) {
        sent = make(rec, name + ".kv", ring.pair_elements(), TensorRole::temporary);
        rec.session.kernel({.name = "concatenate",
                            .reads = {qkv.begin() + (qkv.size() == 3 ? 1 : 0), qkv.end()},
                            .writes = {sent},
                            .bytes = sent.bytes() + sent.bytes()});
      }
      rec.communication->shift(CommGroup::context, "ring_exchange", sent, pair);
    }
    std::vector<Tensor> reads = turn == 0 ? qkv : std::vector<Tensor>{qkv[0], now, ring.out, ring.statistics};
    rec.session.kernel({.name = "flash_attention",
                        .reads = std::move(reads),
                        .writes = {ring.out, ring.statistics},
                        .cost = {.kind = KernelClass::attention_forward,
                                 .type = rec.options.type,
                                 .attention = shape_of_turn(ring.shape, turn),
                                 .flops = ring.flops(2)}});
    if (turn > 0)
      rec.session.kernel({.name = "merge_log_sum_exp", .reads = {ring.statistics}, .writes = {ring.statistics}});
  }
  if (ring.turns > 1)  // each turn's result is read once, to be weighed
    rec.session.kernel({.name = "merge_turns",
                        .reads = {ring.out, ring.statistics},
                        .writes = {ring.out},
                        .bytes = Bytes((2 * ring.turns + 2) * ring.query_elements())});
  Tensor out = ring.out;
  return rec.autograd.record(std::move(out), qkv, false, [&rec, name, ring = std::move(ring)](const Tensor& gradient) {
    return ring_backward(rec, name, ring, gradient);
  });
}

}  // namespace spillway::models::eager
