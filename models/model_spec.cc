#include "models/model_spec.h"

namespace spillway {
namespace {

class ParameterList {
 public:
  explicit ParameterList(std::vector<Parameter>& into) : into_(into) {}
  void enter_layer(std::int64_t layer) { layer_ = layer, prefix_ = "layers." + std::to_string(layer) + "."; }
  void leave_layers() { layer_ = -1, prefix_.clear(); }

  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    into_.push_back({.name = prefix_ + name + ".weight", .layer = layer_, .rows = rows, .columns = columns});
  }
  void vector(const std::string& name, std::int64_t length) {
    into_.push_back({.name = prefix_ + name, .layer = layer_, .rows = length});
  }
  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool bias) {
    matrix(name, outputs, inputs);
    if (bias) vector(name + ".bias", outputs);
  }
  void norm(const std::string& name, std::int64_t width, NormKind kind) {
    vector(name + ".weight", width);
    if (kind == NormKind::layer_norm) vector(name + ".bias", width);
  }

 private:
  std::vector<Parameter>& into_;
  std::int64_t layer_ = -1;
  std::string prefix_;
};

void add_attention(ParameterList& list, const ModelSpec& spec) {
  if (spec.fused_qkv) {
    list.linear("attention.qkv", spec.query_width() + 2 * spec.kv_width(), spec.hidden, spec.qkv_bias);
  } else {
    list.linear("attention.q", spec.query_width(), spec.hidden, spec.qkv_bias);
    list.linear("attention.k", spec.kv_width(), spec.hidden, spec.qkv_bias);
    list.linear("attention.v", spec.kv_width(), spec.hidden, spec.qkv_bias);
  }
  if (spec.query_key_norm) {
    list.norm("attention.q_norm", spec.head_dim, NormKind::rms_norm);
    list.norm("attention.k_norm", spec.head_dim, NormKind::rms_norm);
  }
  list.linear("attention.out", spec.hidden, spec.query_width(), spec.output_bias);
}

void add_feed_forward(ParameterList& list, const ModelSpec& spec) {
  if (spec.gated()) list.linear("mlp.gate", spec.feed_forward, spec.hidden, spec.feed_forward_bias);
  list.linear("mlp.up", spec.feed_forward, spec.hidden, spec.feed_forward_bias);
  list.linear("mlp.down", spec.hidden, spec.feed_forward, spec.feed_forward_bias);
}

void add_layer(ParameterList& list, const ModelSpec& spec) {
  const bool pre = spec.norm_placement == NormPlacement::pre;
  if (pre) list.norm("attention.norm", spec.hidden, spec.norm);
  add_attention(list, spec);
  if (!pre) list.norm("attention.norm", spec.hidden, spec.norm);
  if (pre) list.norm("mlp.norm", spec.hidden, spec.norm);
  add_feed_forward(list, spec);
  if (!pre) list.norm("mlp.norm", spec.hidden, spec.norm);
}

void add_pretraining_heads(ParameterList& list, const ModelSpec& spec) {
  list.linear("mlm.transform", spec.hidden, spec.hidden, true);
  list.norm("mlm.norm", spec.hidden, spec.norm);
  list.vector("mlm.bias", spec.vocabulary);
  list.linear("pooler", spec.hidden, spec.hidden, true);
  list.linear("nsp", 2, spec.hidden, true);
}

}  // namespace

std::vector<Parameter> parameters(const ModelSpec& spec) {
  std::vector<Parameter> result;
  ParameterList list(result);
  list.matrix("embedding", spec.vocabulary, spec.hidden);
  if (spec.positions == Positions::learned)
    list.matrix("positions", spec.max_positions + spec.position_offset, spec.hidden);
  if (spec.token_types > 0) list.matrix("token_types", spec.token_types, spec.hidden);
  const bool pre = spec.norm_placement == NormPlacement::pre;
  if (!pre) list.norm("embedding_norm", spec.hidden, spec.norm);
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    list.enter_layer(layer);
    add_layer(list, spec);
  }
  list.leave_layers();
  if (pre) list.norm("final_norm", spec.hidden, spec.norm);
  if (spec.pretraining_heads) add_pretraining_heads(list, spec);
  if (!spec.tied_embeddings) list.matrix("head", spec.vocabulary, spec.hidden);
  return result;
}

std::int64_t parameter_count(const ModelSpec& spec) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters(spec)) count += parameter.elements();
  return count;
}

std::int64_t matmul_parameter_count(const ModelSpec& spec) {
  const std::int64_t attention = spec.hidden * (2 * spec.query_width() + 2 * spec.kv_width());
  const std::int64_t feed_forward = (spec.gated() ? 3 : 2) * spec.hidden * spec.feed_forward;
  const std::int64_t transform = spec.pretraining_heads ? spec.hidden * spec.hidden : 0;
  return spec.layers * (attention + feed_forward) + transform + spec.vocabulary * spec.hidden;
}

}  // namespace spillway
