#include "models/spec/model_spec.h"

namespace spillway::models {
namespace {

class ParameterList {
 public:
  explicit ParameterList(std::vector<Parameter>& into) : into_(into) {}
  void enter(std::int64_t layer, std::string prefix) { layer_ = layer, prefix_ = std::move(prefix); }
  void belongs_to(Component component) { component_ = component; }

  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", rows, columns, component_, 0);
  }
  void vector(const std::string& name, std::int64_t length) { add(name, length, 1, component_, 0); }
  void linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool bias) {
    matrix(name, outputs, inputs);
    if (bias) vector(name + ".bias", outputs);
  }
  void norm(const std::string& name, std::int64_t width, const ModelSpec& spec) {
    if (!spec.norm_weights) return;
    add(name + ".weight", width, 1, Component::norm, 0);
    if (spec.norm == NormKind::layer_norm && spec.norm_bias) add(name + ".bias", width, 1, Component::norm, 0);
  }
  void rms_norm(const std::string& name, std::int64_t width) { add(name + ".weight", width, 1, Component::norm, 0); }
  // What mixes residual streams: no matrix of a branch.
  void mixture(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", rows, columns, Component::norm, 0);
  }
  void layer_norm(const std::string& name, std::int64_t width) {
    rms_norm(name, width);
    add(name + ".bias", width, 1, Component::norm, 0);
  }
  void experts(const std::string& name, std::int64_t outputs, std::int64_t inputs, const Experts& experts) {
    add(name + ".weight", experts.count * outputs, inputs, Component::experts, experts.count);
    if (experts.bias) add(name + ".bias", experts.count * outputs, 1, Component::experts, experts.count);
  }

 private:
  void add(const std::string& name, std::int64_t rows, std::int64_t columns, Component component,
           std::int64_t experts) {
    into_.push_back({.name = prefix_ + name,
                     .layer = layer_,
                     .rows = rows,
                     .columns = columns,
                     .component = component,
                     .experts = experts});
  }

  std::vector<Parameter>& into_;
  std::int64_t layer_ = -1;
  std::string prefix_;
  Component component_ = Component::embedding;
};

void add_gates_by_channel(ParameterList& list, const LinearAttention& linear, std::int64_t hidden) {
  list.matrix("attention.mixed", linear.convolved(), hidden);
  list.matrix("attention.decay", linear.value_heads, hidden);
  list.matrix("attention.decay_down", linear.gate_rank, hidden);
  if (!linear.whole_gate) list.matrix("attention.gate_down", linear.gate_rank, hidden);
  list.matrix("attention.decay_up", linear.key_width(), linear.gate_rank);
  if (linear.whole_gate)
    list.matrix("attention.gate", linear.value_width(), hidden);
  else
    list.linear("attention.gate_up", linear.value_width(), linear.gate_rank, true);
}

// Two products of `width`, or twice that where keys overlap, which a number per token of a key and channel moves.
void add_compressor(ParameterList& list, const std::string& name, std::int64_t hidden, std::int64_t width,
                    const Block& block) {
  const std::int64_t made = (block.chooses ? 2 : 1) * width;
  list.matrix(name + "_kv", made, hidden);
  list.matrix(name + "_gate", made, hidden);
  list.matrix(name + "_positions", block.compression * made, 1);
  list.rms_norm(name + "_norm", width);
}

void add_index(ParameterList& list, const ModelSpec& spec, const Block& block) {
  const Indexer& indexer = spec.indexer;
  const std::int64_t inputs = spec.has_compressed() ? spec.compressed.query_rank
                              : spec.has_latent()   ? spec.latent.query_rank
                                                    : spec.hidden;
  list.matrix("attention.index_q", indexer.heads * indexer.head_dim, inputs);
  if (spec.has_compressed())
    add_compressor(list, "attention.index", spec.hidden, indexer.head_dim, block);
  else
    list.matrix("attention.index_k", indexer.head_dim, spec.hidden);
  if (spec.has_latent()) list.layer_norm("attention.index_norm", indexer.head_dim);
  if (indexer.block == 0) {
    list.matrix("attention.index_weights", indexer.heads, spec.hidden);
    return;
  }
  list.rms_norm("attention.index_q_norm", indexer.head_dim);
  list.rms_norm("attention.index_norm", indexer.head_dim);
}

void add_compressed_attention(ParameterList& list, const ModelSpec& spec, const Block& block) {
  const CompressedAttention& sizes = spec.compressed;
  list.matrix("attention.q_down", sizes.query_rank, spec.hidden);
  list.rms_norm("attention.q_latent_norm", sizes.query_rank);
  list.matrix("attention.q_up", block.query_width(), sizes.query_rank);
  list.matrix("attention.kv", block.head_dim, spec.hidden);
  list.rms_norm("attention.kv_latent_norm", block.head_dim);
  if (block.compression > 0) add_compressor(list, "attention.compress", spec.hidden, block.head_dim, block);
  if (block.chooses) add_index(list, spec, block);
  if (block.sinks) list.matrix("attention.sinks", block.heads, 1);
  list.matrix("attention.out_groups", sizes.output_groups * sizes.output_rank,
              block.query_width() / sizes.output_groups);
  list.linear("attention.out", spec.hidden, sizes.output_groups * sizes.output_rank, spec.output_bias);
}

void add_latent_attention(ParameterList& list, const ModelSpec& spec) {
  const LatentAttention& latent = spec.latent;
  if (latent.query_rank > 0) {
    list.linear("attention.q_down", latent.query_rank, spec.hidden, spec.qkv_bias);
    list.rms_norm("attention.q_latent_norm", latent.query_rank);
    list.matrix("attention.q_up", spec.query_width(), latent.query_rank);
  } else {
    list.matrix("attention.q", spec.query_width(), spec.hidden);
  }
  list.linear("attention.kv_down", latent.kv_rank + latent.rope_dim, spec.hidden, spec.qkv_bias);
  list.rms_norm("attention.kv_latent_norm", latent.kv_rank);
  list.matrix("attention.kv_up", spec.heads * (latent.nope_dim + latent.value_dim), latent.kv_rank);
  if (spec.has_indexer()) add_index(list, spec, {});
  if (spec.attention_gate) list.matrix("attention.gate", spec.context_width(), spec.hidden);
}

// Queries, keys, values and gates are one projection; what moves the state two numbers per head of values.
void add_linear_attention(ParameterList& list, const ModelSpec& spec) {
  const LinearAttention& linear = spec.linear;
  list.belongs_to(Component::attention);
  if (linear.fixed_decay) {
    list.matrix("attention.mixed", linear.convolved(), spec.hidden);
    list.matrix("attention.gate", linear.value_width(), spec.hidden);
    list.rms_norm("attention.result_norm", linear.value_width());
    return list.linear("attention.out", spec.hidden, linear.value_width(), spec.output_bias);
  }
  if (linear.gate_rank > 0) {
    add_gates_by_channel(list, linear, spec.hidden);
  } else {
    list.matrix("attention.mixed", linear.convolved() + linear.value_width(), spec.hidden);
    list.matrix("attention.decay", 2 * linear.value_heads, spec.hidden);
  }
  list.matrix("attention.convolution", linear.convolved(), linear.convolution);
  list.vector("attention.time_bias", linear.gate_rank > 0 ? linear.key_width() : linear.value_heads);
  list.vector("attention.decay_log", linear.value_heads);
  list.rms_norm("attention.result_norm", linear.value_dim);
  list.linear("attention.out", spec.hidden, linear.value_width(), spec.output_bias);
}

// Values and gate; out of the values a bottleneck of steps, inputs and outputs, and out of this each channel's step.
void add_first_mamba(ParameterList& list, const ModelSpec& spec) {
  const Mamba& mamba = spec.mamba;
  const std::int64_t d = mamba.width();
  list.linear("mamba.in", mamba.projected(), spec.hidden, mamba.bias);
  list.matrix("mamba.convolution", d, mamba.convolution);
  if (mamba.convolution_bias) list.vector("mamba.convolution.bias", d);
  list.matrix("mamba.enter", mamba.step_rank + 2 * mamba.state, d);
  list.matrix("mamba.step", d, mamba.step_rank);
  list.matrix("mamba.time_bias", d, 1);
  list.matrix("mamba.decay_log", d * mamba.state, 1);
  list.matrix("mamba.skip", d, 1);
  if (mamba.inner_norms) {
    list.rms_norm("mamba.step_input_norm", mamba.step_rank);
    list.rms_norm("mamba.inputs_norm", mamba.state);
    list.rms_norm("mamba.outputs_norm", mamba.state);
  }
  list.linear("mamba.out", spec.hidden, d, mamba.bias);
}

// One product makes gate, values, the inputs and outputs of the states, and each head's step of time.
void add_mamba(ParameterList& list, const ModelSpec& spec) {
  const Mamba& mamba = spec.mamba;
  list.belongs_to(Component::attention);
  if (mamba.is_first()) return add_first_mamba(list, spec);
  list.linear("mamba.in", mamba.projected(), spec.hidden, mamba.bias);
  list.matrix("mamba.convolution", mamba.convolved(), mamba.convolution);
  if (mamba.convolution_bias) list.vector("mamba.convolution.bias", mamba.convolved());
  list.matrix("mamba.time_bias", mamba.heads, 1);
  list.matrix("mamba.decay_log", mamba.heads, 1);
  list.matrix("mamba.skip", mamba.heads, 1);
  if (mamba.norm) list.rms_norm("mamba.result_norm", mamba.width());
  list.linear("mamba.out", spec.hidden, mamba.width(), mamba.bias);
}

void add_short_convolution(ParameterList& list, const ModelSpec& spec) {
  const ShortConvolution& convolution = spec.convolution;
  list.belongs_to(Component::attention);
  list.linear("convolution.in", 3 * spec.hidden, spec.hidden, convolution.bias);
  list.matrix("convolution.filter", spec.hidden, convolution.tokens);
  if (convolution.bias) list.vector("convolution.filter.bias", spec.hidden);
  list.linear("convolution.out", spec.hidden, spec.hidden, convolution.bias);
}

void add_query_key_norms(ParameterList& list, const ModelSpec& spec, const Block& block) {
  const bool wide = spec.wide_query_key_norm;
  if (!wide && !spec.query_key_norm) return;
  list.norm("attention.q_norm", wide ? block.query_width() : block.head_dim, spec);
  if (block.shares_keys) return;
  list.norm("attention.k_norm", wide ? block.key_width() : block.head_dim, spec);
}

void add_projections(ParameterList& list, const ModelSpec& spec, const Block& block, const std::string& name) {
  list.linear(name + ".q", block.query_width(), spec.hidden, spec.qkv_bias);
  if (block.shares_keys) return;
  list.linear(name + ".k", block.key_width(), spec.hidden, spec.qkv_bias);
  if (!block.keys_as_values) list.linear(name + ".v", block.value_width(), spec.hidden, spec.qkv_bias);
}

void add_attention(ParameterList& list, const ModelSpec& spec, const Block& block) {
  list.belongs_to(Component::attention);
  if (spec.has_compressed()) return add_compressed_attention(list, spec, block);
  if (spec.has_latent()) {
    add_latent_attention(list, spec);
  } else if (spec.fused_qkv) {
    list.linear("attention.qkv", spec.query_width() + 2 * spec.kv_width(), spec.hidden, spec.qkv_bias);
  } else {
    add_projections(list, spec, block, "attention");
    if (spec.attention_gate) list.linear("attention.gate", block.context_width(), spec.hidden, spec.qkv_bias);
    if (spec.head_gate) list.linear("attention.gate", block.heads, spec.hidden, spec.qkv_bias);
  }
  add_query_key_norms(list, spec, block);
  if (block.chooses) add_index(list, spec, block);
  if (block.sinks) list.matrix("attention.sinks", block.heads, 1);
  list.linear("attention.out", spec.hidden, spec.has_latent() ? spec.context_width() : block.context_width(),
              spec.output_bias);
}

void add_cross_attention(ParameterList& list, const ModelSpec& spec, const Block& block) {
  list.norm("cross_attention.norm", spec.hidden, spec);
  list.belongs_to(Component::attention);
  add_projections(list, spec, block, "cross_attention");
  list.linear("cross_attention.out", spec.hidden, spec.query_width(), spec.output_bias);
}

void add_feed_forward(ParameterList& list, const ModelSpec& spec, const std::string& name, std::int64_t width) {
  list.belongs_to(Component::mlp);
  if (spec.gated()) list.linear(name + ".gate", width, spec.hidden, spec.feed_forward_bias);
  list.linear(name + ".up", width, spec.hidden, spec.feed_forward_bias);
  if (spec.activation == Activation::xielu) list.matrix(name + ".slopes", 2, 1);
  list.linear(name + ".down", spec.hidden, width, spec.feed_forward_bias);
}

void add_experts(ParameterList& list, const ModelSpec& spec) {
  const Experts& experts = spec.experts;
  list.belongs_to(Component::router);
  list.linear("mlp.router", experts.scored(), spec.hidden, experts.bias);
  if (experts.selection_bias) list.vector("mlp.router.selection_bias", experts.scored());
  const std::int64_t width = experts.latent_width > 0 ? experts.latent_width : spec.hidden;
  list.belongs_to(Component::mlp);
  if (experts.latent_width > 0) list.matrix("mlp.enter_latent", width, spec.hidden);
  if (experts.latent_norm) list.rms_norm("mlp.latent_norm", width);
  if (spec.gated()) list.experts("mlp.experts.gate", experts.width, width, experts);
  list.experts("mlp.experts.up", experts.width, width, experts);
  list.experts("mlp.experts.down", width, experts.width, experts);
  if (experts.latent_width > 0) list.matrix("mlp.leave_latent", spec.hidden, width);
  if (experts.shared_width == 0) return;
  add_feed_forward(list, spec, "mlp.shared", experts.shared_width);
  if (experts.shared_gate) list.matrix("mlp.shared_gate", 1, spec.hidden);
}

void add_mixer(ParameterList& list, const ModelSpec& spec, const Block& block) {
  if (block.mixer == Mixer::delta_rule) add_linear_attention(list, spec);
  if (block.mixer == Mixer::convolution) add_short_convolution(list, spec);
  if (block.has_mamba()) add_mamba(list, spec);
  if (block.attends()) add_attention(list, spec, block);
}

// Where both are and results are normed, the dense block's result has a norm of its own, and so has what the experts
// read and what they give; the router scales what it reads and each expert's share.
void add_dense_beside_experts(ParameterList& list, const ModelSpec& spec, const Block& block) {
  add_feed_forward(list, spec, "mlp", block.width);
  if (!spec.norms_results()) return add_experts(list, spec);
  list.norm("mlp.dense_norm", spec.hidden, spec);
  list.norm("mlp.experts_norm", spec.hidden, spec);
  add_experts(list, spec);
  list.belongs_to(Component::router);
  list.matrix("mlp.router.scale", spec.hidden, 1);
  list.matrix("mlp.router.expert_scales", spec.experts.count, 1);
  list.norm("mlp.experts.post_norm", spec.hidden, spec);
}

// What makes the mixture that a sub-layer reads, and with streams what writes its result: a matrix over all streams, an
// offset for each share, a scale for each kind of them. `shares`: of the streams.
void add_mixture(ParameterList& list, const ModelSpec& spec, const std::string& name, std::int64_t shares,
                 std::int64_t scales) {
  if (spec.streams > 1) {
    list.mixture(name + ".mixture", shares, spec.streams * spec.hidden);
    list.mixture(name + ".mixture.base", shares, 1);
    list.mixture(name + ".mixture.scale", scales, 1);
  }
  if (spec.residual_group == 0) return;
  list.rms_norm(name + ".mixture_norm", spec.hidden);
  list.mixture(name + ".mixture", 1, spec.hidden);
}

void add_layer(ParameterList& list, const ModelSpec& spec, const Block& block, bool cross, bool first_norm = true) {
  const bool before = spec.norms_inputs();
  const std::int64_t shares = (2 + spec.streams) * spec.streams;
  const bool after = spec.norm_placement != NormPlacement::pre;
  const std::string after_name = before ? ".post_norm" : ".norm";
  if (block.mixer != Mixer::none) {
    add_mixture(list, spec, "attention", shares, 3);
    if (before && first_norm) list.norm("attention.norm", spec.hidden, spec);
    add_mixer(list, spec, block);
    if (after) list.norm("attention" + after_name, spec.hidden, spec);
  }
  if (cross) add_cross_attention(list, spec, block);
  if (block.feed_forward == FeedForward::none) return;
  add_mixture(list, spec, "mlp", shares, 3);
  if (before && spec.block_layout != BlockLayout::parallel_one_norm) list.norm("mlp.norm", spec.hidden, spec);
  if (block.feed_forward == FeedForward::both) {
    add_dense_beside_experts(list, spec, block);
  } else if (block.feed_forward == FeedForward::experts) {
    add_experts(list, spec);
  } else {
    add_feed_forward(list, spec, "mlp", block.width);
  }
  if (after) list.norm("mlp" + after_name, spec.hidden, spec);
  if (!spec.has_layer_inputs()) return;
  list.belongs_to(Component::mlp);
  list.matrix("input.gate", spec.layer_inputs.width, spec.hidden);
  list.matrix("input.projection", spec.hidden, spec.layer_inputs.width);
  list.norm("input.norm", spec.hidden, spec);
}

// The first layer of a stack holds the bias that all its layers add to their scores.
void add_relative_bias(ParameterList& list, const ModelSpec& spec) {
  if (spec.positions != Positions::relative_bias) return;
  list.belongs_to(Component::attention);
  list.matrix("attention.relative_bias", spec.position_buckets, spec.heads);
}

void add_stacks(ParameterList& list, const ModelSpec& spec) {
  for (std::int64_t layer = 0; layer < spec.encoder_layers; ++layer) {
    list.enter(layer, spec.layer_prefix(layer));
    if (layer == 0) add_relative_bias(list, spec);
    add_layer(list, spec, spec.block_of_all(layer), false);
  }
  list.enter(-1, "");
  if (spec.has_encoder()) list.norm("encoder.final_norm", spec.hidden, spec);
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    list.enter(spec.encoder_layers + layer, spec.layer_prefix(spec.encoder_layers + layer));
    if (layer == 0) add_relative_bias(list, spec);
    add_layer(list, spec, spec.block(layer), spec.has_encoder(), spec.norms_attention(layer));
  }
  list.enter(-1, "");
}

void add_embeddings(ParameterList& list, const ModelSpec& spec) {
  if (spec.reads_images()) {
    if (spec.patches.class_token) list.vector("class_token", spec.hidden);
    list.linear("patches", spec.hidden, spec.patches.values(), spec.patches.bias);
    if (spec.patches.table > 0) list.matrix("positions", spec.patches.table, spec.hidden);
  } else {
    list.matrix("embedding", spec.vocabulary, spec.embedding_columns());
    if (spec.embedding_width > 0) list.matrix("embedding.projection", spec.hidden, spec.embedding_width);
  }
  if (spec.has_layer_inputs()) {
    const std::int64_t width = spec.layers * spec.layer_inputs.width;
    list.matrix("layer_inputs", spec.layer_inputs.vocabulary, width);
    list.matrix("layer_inputs.projection", width, spec.hidden);
    list.rms_norm("layer_inputs.norm", spec.layer_inputs.width);
  }
  if (spec.positions == Positions::learned)
    list.matrix("positions", spec.max_positions + spec.position_offset, spec.hidden);
  if (spec.token_types > 0) list.matrix("token_types", spec.token_types, spec.hidden);
  if (spec.norms_embedding()) list.norm("embedding_norm", spec.hidden, spec);
}

void add_mtp(ParameterList& list, const ModelSpec& spec) {
  const std::vector<Block> blocks = spec.mtp_layers > 0 ? spec.mtp_blocks() : std::vector<Block>();
  std::int64_t index = spec.all_layers();
  for (std::int64_t depth = 0; depth < spec.mtp_layers; ++depth) {
    list.enter(-1, spec.layer_prefix(index));
    list.norm("join.embedding_norm", spec.hidden, spec);
    list.norm("join.hidden_norm", spec.hidden, spec);
    list.belongs_to(Component::mlp);
    list.matrix("join.projection", spec.hidden, 2 * spec.hidden);
    list.norm("join.final_norm", spec.hidden, spec);
    for (const Block& block : blocks) {
      list.enter(-1, spec.layer_prefix(index++));
      add_layer(list, spec, block, false);
    }
  }
  list.enter(-1, "");
}

// `is_tap`: its norm is over the whole row.
void add_projector(ParameterList& list, const ModelSpec& spec, const std::string& name, bool is_tap) {
  const Projector& projector = spec.projector;
  const std::int64_t joined = projector.pools ? spec.hidden : projector.merged() * spec.hidden;
  const bool reduces = projector.reduces && !is_tap;
  list.belongs_to(Component::head);
  if (is_tap || (projector.norm && !projector.is_rms)) list.layer_norm(name + ".norm", is_tap ? joined : spec.hidden);
  if (!is_tap && projector.norm && projector.is_rms) list.rms_norm(name + ".norm", spec.hidden);
  if (reduces) list.matrix(name + ".merge", spec.hidden, joined);
  const std::int64_t read = reduces ? spec.hidden : joined;
  if (projector.inner > 0) list.linear(name + ".in", projector.inner, read, projector.bias);
  list.linear(name + ".out", projector.width, projector.inner > 0 ? projector.inner : read, projector.bias);
}

void add_heads(ParameterList& list, const ModelSpec& spec) {
  if (spec.is_tower()) {
    add_projector(list, spec, "projector", false);
    for (std::size_t i = 0; i < spec.projector.taps.size(); ++i)
      add_projector(list, spec, "projector.taps." + std::to_string(i), true);
    return;
  }
  list.belongs_to(Component::head);
  if (spec.pretraining_heads || spec.masked_lm_head) {
    list.linear("mlm.transform", spec.hidden, spec.hidden, spec.norm_bias);
    list.norm("mlm.norm", spec.hidden, spec);
    list.vector("mlm.bias", spec.vocabulary);
  }
  if (spec.pretraining_heads) {
    list.linear("pooler", spec.hidden, spec.hidden, true);
    list.linear("nsp", 2, spec.hidden, true);
  }
  if (spec.classes > 0) list.linear("classifier", spec.classes, spec.hidden, true);
  if (spec.reads_images()) return;
  if (spec.embedding_width > 0) list.matrix("head.projection", spec.embedding_width, spec.hidden);
  if (spec.value_head) return list.linear("value", 1, spec.embedding_columns(), false);
  if (!spec.tied_embeddings) list.matrix("head", spec.vocabulary, spec.embedding_columns());
  if (spec.head_bias) list.vector("head.bias", spec.vocabulary);
}

bool multiplies_tokens(const Parameter& parameter) {
  const bool gathered = parameter.component == Component::embedding && !parameter.name.starts_with("patches") &&
                        !parameter.name.ends_with("projection.weight");
  const bool of_one_token = parameter.name.starts_with("pooler") || parameter.name.starts_with("nsp") ||
                            parameter.name.starts_with("classifier");
  const bool matrix =
      parameter.name.ends_with(".weight") && parameter.columns > 1 && parameter.component != Component::norm;
  return matrix && !gathered && !of_one_token && !parameter.name.ends_with("relative_bias.weight");
}

// Of the model without a list of blocks.
Block periodic_block(const ModelSpec& spec, std::int64_t layer) {
  const LinearAttention& linear = spec.linear;
  const Experts& experts = spec.experts;
  Block block;
  if (spec.has_linear() && (linear.full_every == 0 || (layer + 1) % linear.full_every != 0))
    block.mixer = Mixer::delta_rule;
  if (spec.has_experts() && layer >= experts.first_dense_layers && (layer + 1) % experts.every == 0)
    block.feed_forward = FeedForward::experts;
  block.window = spec.global_every > 0 && (layer + 1) % spec.global_every == 0 ? 0 : spec.attention_window;
  block.sinks = spec.attention_sinks;
  return block;
}

const Block& listed_block(const std::vector<Block>& blocks, std::int64_t layer) {
  std::int64_t period = 0;
  for (const Block& each : blocks) period += each.count;
  layer %= period;
  std::size_t at = 0;
  while (layer >= blocks[at].count) layer -= blocks[at++].count;
  return blocks[at];
}

Block with_sizes(Block block, const ModelSpec& spec) {
  if (block.heads == 0) block.heads = spec.heads;
  if (block.kv_heads == 0) block.kv_heads = spec.kv_heads;
  if (block.head_dim == 0) block.head_dim = spec.head_dim;
  if (block.value_dim == 0) block.value_dim = block.head_dim;
  if (block.width == 0) block.width = spec.feed_forward;
  return block;
}

}  // namespace

Block ModelSpec::block(std::int64_t layer) const {
  return with_sizes(blocks.empty() ? periodic_block(*this, layer) : listed_block(blocks, layer), *this);
}

std::vector<Block> ModelSpec::mtp_blocks() const {
  std::vector<Block> blocks = {block(layers - 1)};
  if (blocks[0].mixer != Mixer::none && blocks[0].feed_forward != FeedForward::none) return blocks;
  blocks.clear();
  const auto add_last = [&](bool (*is)(const Block&)) {
    for (std::int64_t layer = layers; layer-- > 0;)
      if (const Block one = block(layer); is(one)) return blocks.push_back(one);
  };
  add_last([](const Block& one) { return one.attends(); });
  add_last([](const Block& one) { return one.feed_forward != FeedForward::none; });
  return blocks;
}

Block ModelSpec::block_of_all(std::int64_t layer) const {
  if (layer >= all_layers()) {
    const std::vector<Block> blocks = mtp_blocks();
    return blocks[static_cast<std::size_t>(layer - all_layers()) % blocks.size()];
  }
  return is_encoder_layer(layer) ? with_sizes({}, *this) : block(layer - encoder_layers);
}

bool ModelSpec::any_block(bool (*is)(const Block&)) const {
  for (const Block& each : blocks)
    if (is(with_sizes(each, *this))) return true;
  for (std::int64_t layer = 0; blocks.empty() && layer < layers; ++layer)
    if (is(block(layer))) return true;
  return false;
}

std::vector<Parameter> parameters(const ModelSpec& spec) {
  std::vector<Parameter> result;
  ParameterList list(result);
  add_embeddings(list, spec);
  add_stacks(list, spec);
  list.belongs_to(Component::norm);
  add_mixture(list, spec, "output", spec.streams, 1);
  if (spec.norm_placement != NormPlacement::post) list.norm("final_norm", spec.hidden, spec);
  add_mtp(list, spec);
  add_heads(list, spec);
  return result;
}

std::int64_t parameter_count(const ModelSpec& spec) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters(spec)) count += parameter.elements();
  return count;
}

std::int64_t matmul_elements(const ModelSpec& spec, const Parameter& parameter) {
  if (!multiplies_tokens(parameter)) return 0;
  const std::int64_t experts = parameter.experts;
  return experts == 0 ? parameter.elements() : parameter.elements() / experts * spec.experts.active;
}

std::int64_t matmul_parameter_count(const ModelSpec& spec) {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters(spec)) count += matmul_elements(spec, parameter);
  const bool shared_head = spec.tied_embeddings && !spec.reads_images();
  return count + ((shared_head ? 1 : 0) + spec.mtp_layers) * spec.vocabulary * spec.embedding_columns();
}

std::int64_t half_squares_of_scores(const ModelSpec& spec) {
  const std::int64_t self = spec.mask == AttentionMask::causal ? 1 : 2;
  std::int64_t attending = 0;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const Block block = spec.block(layer);
    attending += block.attends() ? block.query_width() : 0;
  }
  for (const Block& block : spec.mtp_layers > 0 ? spec.mtp_blocks() : std::vector<Block>())
    attending += block.attends() ? spec.mtp_layers * block.query_width() : 0;
  return attending * self + (2 * spec.encoder_layers + (spec.has_encoder() ? 2 * spec.layers : 0)) * spec.query_width();
}

ParameterCounts parameter_counts(const ModelSpec& spec) {
  ParameterCounts counts;
  for (const Parameter& parameter : parameters(spec)) {
    const std::int64_t elements = parameter.elements();
    switch (parameter.component) {
      case Component::embedding:
        counts.embedding += elements;
        break;
      case Component::attention:
        counts.attention += elements;
        break;
      case Component::mlp:
        counts.mlp += elements;
        break;
      case Component::router:
        counts.router += elements;
        break;
      case Component::experts:
        counts.experts += elements;
        counts.active_experts += elements / parameter.experts * spec.experts.active;
        break;
      case Component::norm:
        counts.norm += elements;
        break;
      case Component::head:
        counts.head += elements;
        break;
    }
  }
  return counts;
}

}  // namespace spillway::models
