// Attention over a context group whose keys and values are gathered (PyTorch's context_parallel).
#include <utility>

#include "base/input_error.h"
#include "models/network/attention_size.h"
#include "models/network/eager_attention.h"
#include "models/network/eager_ops.h"

namespace spillway::models::eager {
namespace {

// Its collectives are issued on the program's own stream, whose kernels they wait for.
class OnProgramStream {
 public:
  explicit OnProgramStream(Communication& communication)
      : communication_(communication), waited_(communication.after_kernels()) {
    communication_.set_after_kernels(true);
  }
  OnProgramStream(const OnProgramStream&) = delete;
  OnProgramStream& operator=(const OnProgramStream&) = delete;
  ~OnProgramStream() { communication_.set_after_kernels(waited_); }

 private:
  Communication& communication_;
  bool waited_;
};

// Traffic of the elementwise kernels that merge a turn's result, per element of it: sigmoid of the difference of row
// sums, differences, products and sums on fp32 copies, and a chunk and a concatenation where half the queries took
// part. Backwards sums and casts of three gradients. Counted from the code, operator by operator.
constexpr std::int64_t merge_bytes = 72, merge_backward_bytes = 54;

struct Gathered {
  AttentionShape shape;     // of this rank's queries, with as many key heads
  std::vector<Tensor> qkv;  // one packed or three
  Tensor out, statistics;
  std::int64_t turns = 1;
  [[nodiscard]] std::vector<Tensor> keys_and_values() const {
    return {qkv.begin() + (qkv.size() == 3 ? 1 : 0), qkv.end()};
  }
};

// Each turn's gradient of keys goes to the next rank in fp32 and is added to there, beside the next turn's kernel
// unless that waits for it; the last one brings it home.
std::vector<Tensor> gathered_backward(EagerRecorder& rec, const std::string& name, const Gathered& all,
                                      const Tensor& gradient) {
  const OnProgramStream on_stream(*rec.communication);
  const AttentionShape& shape = all.shape;
  const Tensor q_gradient = make(rec, name + ".q.grad", query_elements(shape), TensorRole::temporary);
  const Tensor sums = temporary(rec, name + ".q.grad_fp32", DataType::fp32, query_elements(shape));
  const Tensor pairs = make(rec, name + ".kv.all", 2 * all.turns * key_elements(shape), TensorRole::temporary);
  rec.communication->gather_into(CommGroup::context, "all_gather", all.keys_and_values(), {pairs}, pairs.bytes());
  Tensor pair_gradient;  // that came last
  for (std::int64_t turn = 0; turn < all.turns; ++turn) {
    const AttentionShape part = shape_of_turn(all.shape, turn);
    std::vector<Tensor> reads = {gradient, all.out, all.statistics, all.qkv[0]};
    if (turn == 0) reads.insert(reads.end(), all.qkv.begin() + 1, all.qkv.end());
    if (turn > 0 || rec.options.waits_for_context) reads.push_back(pairs);
    if (turn > 0 && rec.options.waits_for_context) reads.push_back(pair_gradient);
    Tensor own = temporary(rec, name + ".kv.grad_fp32", DataType::fp32, 2 * key_elements(shape));
    rec.session.kernel({.name = "flash_attention_backward",
                        .reads = std::move(reads),
                        .writes = {sums, own},
                        .cost = {.kind = KernelClass::attention_backward,
                                 .type = rec.options.type,
                                 .attention = part,
                                 .flops = Flops(10 * part.batch * part.heads * part.sequence * part.key_count() *
                                                part.head_dim / (part.causal ? 2 : 1))}});
    if (turn > 0)
      rec.session.kernel({.name = "merge_gradients",
                          .reads = {sums, own, pair_gradient},
                          .writes = {sums, own},
                          .bytes = Bytes(merge_backward_bytes * query_elements(part))});
    pair_gradient = temporary(rec, name + ".kv.grad_fp32", DataType::fp32, 2 * key_elements(shape));
    rec.communication->shift(CommGroup::context, "ring_exchange", own, pair_gradient);
  }
  rec.session.kernel({.name = "cast", .reads = {sums}, .writes = {q_gradient}});
  const Tensor k_gradient = make(rec, name + ".k.grad", key_elements(shape), TensorRole::temporary);
  const Tensor v_gradient = make(rec, name + ".v.grad", key_elements(shape), TensorRole::temporary);
  rec.session.kernel({.name = "cast", .reads = {pair_gradient}, .writes = {k_gradient, v_gradient}});
  return join_gradients(rec, name, all.qkv, {q_gradient, k_gradient, v_gradient});
}

}  // namespace

Tensor gathered_attention(EagerRecorder& rec, const std::string& name, std::vector<Tensor> qkv, AttentionShape shape) {
  SPILLWAY_ASSERT(rec.communication != nullptr);
  const OnProgramStream on_stream(*rec.communication);
  if (qkv.size() == 3) {
    qkv[1] = repeat_heads(rec, name + ".k", qkv[1], shape);
    qkv[2] = repeat_heads(rec, name + ".v", qkv[2], shape);
    shape.kv_heads = shape.heads;
  }
  Gathered all{.shape = shape, .qkv = qkv, .turns = rec.communication->shape(CommGroup::context).ranks};
  all.out = rec.kept_result();
  all.statistics = rec.kept_result();
  if (!all.out) {
    all.out = make(rec, name + ".context", query_elements(shape));
    all.statistics = rec.session.empty(name + ".log_sum_exp", DataType::fp32,
                                       shape.batch * shape.heads * shape.sequence, TensorRole::activation);
    Tensor pairs = make(rec, name + ".kv.all", 2 * all.turns * key_elements(shape), TensorRole::temporary);
    rec.communication->gather_into(CommGroup::context, "all_gather", all.keys_and_values(), {pairs}, pairs.bytes());
    for (std::int64_t turn = 0; turn < all.turns; ++turn) {
      std::vector<Tensor> reads = turn == 0 ? qkv : std::vector<Tensor>{qkv[0], pairs, all.out, all.statistics};
      if (turn == 0 && rec.options.waits_for_context) reads.push_back(pairs);
      const AttentionShape part = shape_of_turn(all.shape, turn);
      rec.session.kernel({.name = "flash_attention",
                          .reads = std::move(reads),
                          .writes = {all.out, all.statistics},
                          .cost = {.kind = KernelClass::attention_forward,
                                   .type = rec.options.type,
                                   .attention = part,
                                   .flops = Flops(4 * part.batch * part.heads * part.sequence * part.key_count() *
                                                  part.head_dim / (part.causal ? 2 : 1))}});
      if (turn > 0)
        rec.session.kernel({.name = "merge_turn",
                            .reads = {all.out, all.statistics},
                            .writes = {all.out, all.statistics},
                            .bytes = Bytes(merge_bytes * query_elements(part))});
    }
    rec.keep_result(all.out);
    rec.keep_result(all.statistics);
  }
  Tensor out = all.out;
  return rec.autograd.record(std::move(out), qkv, false, [&rec, name, all = std::move(all)](const Tensor& gradient) {
    return gathered_backward(rec, name, all, gradient);
  });
}

}  // namespace spillway::models::eager
