#include "models/transformer.h"

#include <utility>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

DataType activation_type(const TrainingSetup& setup) {
  return setup.precision == TrainingPrecision::fp32 ? DataType::fp32 : DataType::bf16;
}

}  // namespace

Transformer::Transformer(const ModelSpec& model, const TrainingSetup& setup, EagerSession& session, Autograd& autograd)
    : model_(model),
      setup_(setup),
      session_(session),
      autograd_(autograd),
      ops_(session, autograd, activation_type(setup)) {
  for (Parameter& shape : spillway::parameters(model)) {
    const std::string name = shape.name;
    session.set_layer(shape.layer);
    Tensor value = session.empty(name, activation_type(setup), shape.elements(), TensorRole::weight);
    parameters_.push_back({.shape = std::move(shape), .value = std::move(value)});
    by_name_.emplace(name, &parameters_.back());
  }
  session.set_layer(-1);
  if (model.positions == Positions::rotary) {
    angles_ =
        session.empty("rotary.angles", activation_type(setup), 2 * setup.sequence * model.head_dim, TensorRole::buffer);
  } else if (model.positions == Positions::learned) {
    position_ids_ = session.empty("positions.ids", DataType::int64, setup.sequence, TensorRole::buffer);
  }
  if (model.pretraining_heads)
    next_sentence_labels_ = session.empty("nsp.labels", DataType::int64, setup.micro_batch, TensorRole::buffer);
}

TrainedParameter& Transformer::weight(const std::string& name) {
  const auto found = by_name_.find(name + ".weight");
  SPILLWAY_ASSERT(found != by_name_.end());
  return *found->second;
}

TrainedParameter* Transformer::bias(const std::string& name) {
  const auto found = by_name_.find(name + ".bias");
  return found == by_name_.end() ? nullptr : found->second;
}

Tensor Transformer::norm(const std::string& name, const Tensor& x) {
  if (model_.norm == NormKind::rms_norm && !setup_.fused_kernels) return ops_.unfused_rms_norm(name, x, weight(name));
  return ops_.norm(name, x, weight(name), bias(name));
}

Tensor Transformer::rotary(const std::string& name, const Tensor& x) {
  return setup_.fused_kernels ? ops_.rotary(name, x, angles_) : ops_.unfused_rotary(name, x, angles_);
}

Tensor Transformer::forward(const Tensor& ids, const Tensor& labels) {
  Tensor x = embed(ids);
  for (std::int64_t index = 0; index < model_.layers; ++index) {
    session_.set_layer(index);
    if (setup_.recompute == Recompute::full) {
      x = autograd_.checkpoint({x},
                               [this, index](const std::vector<Tensor>& inputs) { return layer(index, inputs[0]); });
    } else {
      x = layer(index, x);
    }
  }
  session_.set_layer(-1);
  if (model_.norm_placement == NormPlacement::pre) x = norm("final_norm", x);
  return model_.pretraining_heads ? pretraining_loss(x, labels) : head_loss(x, labels);
}

Tensor Transformer::embed(const Tensor& ids) {
  Tensor x = ops_.embedding("embedding", ids, weight("embedding"));
  if (model_.token_types > 0) {
    const Tensor types = ops_.embedding("token_types", ids, weight("token_types"));
    x = ops_.add("token_types.add", x, types);
  }
  if (model_.positions == Positions::learned) {
    const Tensor positions = ops_.embedding("positions", position_ids_, weight("positions"));
    x = ops_.add_broadcast("positions.add", x, positions);
  }
  if (model_.norm_placement == NormPlacement::post) x = norm("embedding_norm", x);
  return ops_.dropout("embedding.dropout", x, setup_.dropout);
}

Tensor Transformer::layer(std::int64_t index, const Tensor& x) {
  const std::string prefix = "layers." + std::to_string(index) + ".";
  const bool pre = model_.norm_placement == NormPlacement::pre;
  Tensor branch = pre ? norm(prefix + "attention.norm", x) : x;
  branch = attention(prefix, branch);
  branch = ops_.dropout(prefix + "attention.out.dropout", branch, setup_.dropout);
  Tensor middle = ops_.add(prefix + "attention.residual", x, branch);
  branch = {};
  if (!pre) middle = norm(prefix + "attention.norm", middle);
  branch = pre ? norm(prefix + "mlp.norm", middle) : middle;
  branch = feed_forward(prefix, branch);
  branch = ops_.dropout(prefix + "mlp.down.dropout", branch, setup_.dropout);
  Tensor out = ops_.add(prefix + "mlp.residual", middle, branch);
  branch = {};
  if (!pre) out = norm(prefix + "mlp.norm", out);
  return out;
}

std::vector<Tensor> Transformer::projections(const std::string& prefix, const Tensor& x) {
  if (model_.fused_qkv) return {linear(prefix + "attention.qkv", x)};
  std::vector<Tensor> qkv = {linear(prefix + "attention.q", x), linear(prefix + "attention.k", x),
                             linear(prefix + "attention.v", x)};
  if (model_.query_key_norm) {
    qkv[0] = norm(prefix + "attention.q_norm", qkv[0]);
    qkv[1] = norm(prefix + "attention.k_norm", qkv[1]);
  }
  if (model_.positions == Positions::rotary) {
    qkv[0] = rotary(prefix + "attention.q_rotary", qkv[0]);
    qkv[1] = rotary(prefix + "attention.k_rotary", qkv[1]);
  }
  return qkv;
}

Tensor Transformer::attention(const std::string& prefix, const Tensor& x) {
  std::vector<Tensor> qkv = projections(prefix, x);
  const std::string name = prefix + "attention.core";
  Tensor context;
  if (setup_.recompute == Recompute::selective && !setup_.flash_attention) {
    context = autograd_.checkpoint(qkv, [this, name](const std::vector<Tensor>& inputs) { return core(name, inputs); });
  } else {
    context = core(name, qkv);
  }
  qkv.clear();
  return linear(prefix + "attention.out", context);
}

Tensor Transformer::core(const std::string& name, const std::vector<Tensor>& qkv) {
  const AttentionShape shape{.batch = setup_.micro_batch,
                             .heads = model_.heads,
                             .kv_heads = model_.kv_heads,
                             .sequence = setup_.sequence,
                             .head_dim = model_.head_dim,
                             .causal = model_.mask == AttentionMask::causal};
  return setup_.flash_attention ? ops_.flash_attention(name, qkv, shape)
                                : ops_.plain_attention(name, qkv, shape, setup_.dropout);
}

Tensor Transformer::feed_forward(const std::string& prefix, const Tensor& x) {
  if (model_.gated()) {
    Tensor gate = linear(prefix + "mlp.gate", x);
    const bool gelu = model_.activation == Activation::gelu_gated;
    gate = ops_.pointwise(prefix + (gelu ? "mlp.gelu" : "mlp.silu"), gate,
                          gelu ? EagerOps::Pointwise::gelu : EagerOps::Pointwise::silu);
    const Tensor up = linear(prefix + "mlp.up", x);
    gate = ops_.multiply(prefix + "mlp.product", gate, up);
    return linear(prefix + "mlp.down", gate);
  }
  const bool relu = model_.activation == Activation::relu;
  Tensor inner = linear(prefix + "mlp.up", x);
  inner = ops_.pointwise(prefix + (relu ? "mlp.relu" : "mlp.gelu"), inner,
                         relu ? EagerOps::Pointwise::relu : EagerOps::Pointwise::gelu);
  return linear(prefix + "mlp.down", inner);
}

Tensor Transformer::head_loss(const Tensor& x, const Tensor& labels) {
  TrainedParameter& matrix = weight(model_.tied_embeddings ? "embedding" : "head");
  const Tensor logits = ops_.linear("head", x, matrix, nullptr);
  return ops_.cross_entropy("loss", logits, labels);
}

Tensor Transformer::pretraining_loss(const Tensor& x, const Tensor& labels) {
  Tensor inner = linear("mlm.transform", x);
  inner = ops_.pointwise("mlm.gelu", inner, EagerOps::Pointwise::gelu);
  inner = norm("mlm.norm", inner);
  const Tensor logits = ops_.linear("mlm.decoder", inner, weight("embedding"), bias("mlm"));
  const Tensor token_loss = ops_.cross_entropy("mlm.loss", logits, labels);
  Tensor pooled = ops_.first_tokens("pooler.first", x, setup_.sequence);
  pooled = linear("pooler", pooled);
  pooled = ops_.pointwise("pooler.tanh", pooled, EagerOps::Pointwise::tanh);
  pooled = linear("nsp", pooled);
  const Tensor sentence_loss = ops_.cross_entropy("nsp.loss", pooled, next_sentence_labels_);
  return ops_.add("loss", token_loss, sentence_loss);
}

}  // namespace spillway
