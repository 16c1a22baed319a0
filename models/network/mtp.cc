// Multi-token prediction (DeepSeek-V3, arXiv:2412.19437, section 2.2) as Megatron-core runs it
// (core/transformer/multi_token_prediction.py): every depth reads the embedding again, and the head makes logits of its
// own for it. Losses of the depths come before the main one. Deviation: shifted ids and masked losses cost nothing.
#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/transformer.h"

namespace spillway::models {

Tensor Transformer::mtp_loss(const Tensor& x, const Tensor& labels) {
  std::vector<Tensor> losses;
  Tensor hidden = x;
  const auto blocks = static_cast<std::int64_t>(model_.mtp_blocks().size());
  std::int64_t index = model_.all_layers();
  for (std::int64_t depth = 0; depth < model_.mtp_layers; ++depth) {
    const std::string prefix = model_.layer_prefix(index);
    hidden = joined(prefix, hidden, embed(labels));
    for (const std::int64_t end = index + blocks; index < end; ++index) hidden = layer(index, hidden);
    hidden = norm(prefix + "join.final_norm", hidden);
    losses.push_back(head_loss(hidden, labels));
  }
  Tensor loss = head_loss(x, labels);
  for (const Tensor& each : losses) loss = eager::add(rec_, "mtp.loss", loss, each);
  return loss;
}

// Both normed, one behind the other, times a matrix that is split by rows.
Tensor Transformer::joined(const std::string& prefix, const Tensor& hidden, const Tensor& embedded) {
  const Tensor before = norm(prefix + "join.embedding_norm", embedded),
               behind = norm(prefix + "join.hidden_norm", hidden);
  const std::string name = prefix + "join.projection";
  Tensor both = session_.empty(prefix + "join.both", before.type(), 2 * before.elements(), TensorRole::activation);
  session_.kernel({.name = "concatenate", .reads = {before, behind}, .writes = {both}});
  const std::int64_t each = before.elements();
  both = autograd_.record(std::move(both), {before, behind}, false, [this, prefix, each](const Tensor& gradient) {
    std::vector<Tensor> parts;
    for (const char* part : {"join.embedding_norm.grad", "join.hidden_norm.grad"})
      parts.push_back(session_.empty(prefix + part, gradient.type(), each, TensorRole::temporary));
    session_.kernel({.name = "split", .reads = {gradient}, .writes = parts});
    return parts;
  });
  Tensor out = eager::column_linears(rec_, {layer_of(name)}, both)[0];
  if (setup_.tensor_parallel > 1) out = eager::gather_columns(rec_, name, out);
  return setup_.sequence_parallel ? eager::split_sequence(rec_, name + ".split", out) : out;
}

}  // namespace spillway::models
