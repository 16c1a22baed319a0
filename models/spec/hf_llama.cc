// Llama and its descendants: Mistral, Qwen, Gemma, OLMo, Phi-3, Cohere, StarCoder2, and those with experts.
#include "models/spec/hf_readers.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace spillway::models::hf {

namespace {

bool is_gelu(const std::string& name) {
  return name == "gelu" || name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh";
}

}  // namespace

void read_plain_activation(const HfObject& config, ModelSpec& spec, const char* key, const std::string& fallback) {
  const std::string name = config.text(key, fallback);
  if (!is_gelu(name) && name != "relu") config.unsupported(key, fmt::format("activation \"{}\"", name));
  spec.activation = is_gelu(name) ? Activation::gelu : Activation::relu;
  spec.gelu_new = name == "gelu_new";
}

Activation gated_activation(const HfObject& config, const char* key, const std::string& fallback) {
  const std::string name = config.text(key, fallback);
  if (is_gelu(name)) return Activation::gelu_gated;
  // The latter two bound what the gate and the other half give: as many bytes, and no time to speak of.
  if (name == "silu" || name == "swish" || name == "situ" || name == "swigluoai") return Activation::silu_gated;
  config.unsupported(key, fmt::format("gated activation \"{}\"", name));
}

void read_dropouts(const HfObject& config, ModelSpec& spec, const char* embedding, const char* residual,
                   const char* attention, double fallback, double attention_fallback) {
  spec.dropout = config.number(residual, fallback, 0, 1);
  spec.attention_dropout = config.number(attention, attention_fallback, 0, 1);
  if (config.number(embedding, fallback, 0, 1) != spec.dropout)
    config.unsupported(embedding, fmt::format("another dropout than \"{}\"", residual));
}

void read_llama_shape(const HfObject& config, ModelSpec& spec, const Defaults& defaults) {
  read_llama_sizes(config, spec, defaults);
  spec.activation = gated_activation(config, "hidden_act", "silu");
}

void read_llama_sizes(const HfObject& config, ModelSpec& spec, const Defaults& defaults) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.feed_forward = config.required(defaults.width);
  spec.layers = config.required("num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  const bool every_head = defaults.kv_heads == 0 || config.mentions("num_key_value_heads");
  spec.kv_heads = config.integer("num_key_value_heads", every_head ? spec.heads : defaults.kv_heads);
  const bool divided = defaults.head_dim == 0 || config.mentions("head_dim");
  spec.head_dim = config.integer("head_dim", divided ? spec.hidden / spec.heads : defaults.head_dim);
  spec.max_positions = config.integer("max_position_embeddings", defaults.positions);
  spec.tied_embeddings = config.flag("tie_word_embeddings", defaults.tied);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
}

void read_window(const HfObject& config, ModelSpec& spec, std::int64_t window, std::int64_t every) {
  spec.attention_window = config.integer("sliding_window", window, 0);
  if (config.mentions("sliding_window") && !config.has("sliding_window")) spec.attention_window = 0;
  spec.global_every = spec.attention_window == 0 ? 0 : every;
  const std::int64_t listed = config.size("layer_types");
  if (listed == 0) return;
  if (listed != spec.layers) config.fail("layer_types", "not one for each layer", "correct it");
  std::vector<bool> global;
  for (std::int64_t layer = 0; layer < listed; ++layer) {
    const std::string kind = config.text_at("layer_types", layer);
    if (kind != "full_attention" && kind != "sliding_attention")
      config.unsupported("layer_types", fmt::format("\"{}\"", kind));
    global.push_back(kind == "full_attention");
  }
  const auto first = std::find(global.begin(), global.end(), true);
  spec.global_every = first == global.end() ? 0 : first - global.begin() + 1;
  const std::int64_t window_of_all = spec.attention_window;
  if (spec.global_every == 1) spec.attention_window = spec.global_every = 0;
  if (spec.attention_window == 0 && first == global.end())
    config.fail("sliding_window", "missing, but layers have a window", "add it");
  const auto is_global = [&global](std::int64_t layer) {
    return static_cast<bool>(global[static_cast<std::size_t>(layer)]);
  };
  bool has_period = true;
  for (std::int64_t layer = 0; layer < listed; ++layer)
    has_period = has_period && is_global(layer) == (spec.window_of(layer) == 0);
  if (has_period) return;
  if (window_of_all == 0) config.fail("sliding_window", "missing, but layers have a window", "add it");
  spec.attention_window = window_of_all;
  list_windows(spec, is_global);
}

void list_windows(ModelSpec& spec, const std::function<bool(std::int64_t layer)>& is_global) {
  const std::int64_t window = spec.attention_window;
  spec.attention_window = spec.global_every = 0;
  std::vector<Block> layers(static_cast<std::size_t>(spec.layers));
  for (std::int64_t layer = 0; layer < spec.layers; ++layer)
    layers[static_cast<std::size_t>(layer)].window = is_global(layer) ? 0 : window;
  set_blocks(spec, layers);
}

void set_attention_bias(const HfObject& config, ModelSpec& spec, bool fallback) {
  spec.qkv_bias = spec.output_bias = config.flag("attention_bias", fallback);
}

void read_llama(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
}

void read_mistral(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 131'072, false});
  read_window(config, spec, 4096, 0);
}

void read_phi3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 4096, false});
  read_dropouts(config, spec, "embd_pdrop", "resid_pdrop", "attention_dropout", 0, 0);
  read_window(config, spec, 0, 0);
}

namespace {

void read_qwen2_window(const HfObject& config, ModelSpec& spec) {
  if (!config.flag("use_sliding_window", false)) return;
  const std::int64_t full = config.integer("max_window_layers", 28, 0);
  if (full >= spec.layers) return;
  read_window(config, spec, 4096, 0);
  if (full > 0 && spec.attention_window > 0) list_windows(spec, [full](std::int64_t layer) { return layer < full; });
}

}  // namespace

void read_qwen2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 0, 32'768, false});
  spec.qkv_bias = true;
  read_qwen2_window(config, spec);
}

void read_qwen3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 128, 32'768, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  read_qwen2_window(config, spec);
}

void read_olmo2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.norm_placement = NormPlacement::branch;
  spec.wide_query_key_norm = true;
}

void read_olmo3(const HfObject& config, ModelSpec& spec) {
  read_olmo2(config, spec);
  read_window(config, spec, 4096, 4);
}

void read_cohere(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 8192, true});
  set_attention_bias(config, spec);
  spec.norm = NormKind::layer_norm;
  spec.norm_bias = false;
  spec.block_layout = BlockLayout::parallel_one_norm;
  if (config.flag("use_qk_norm", false)) config.unsupported("use_qk_norm", "a norm with separate weights per head");
}

void read_starcoder2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {2, 0, 4096, true});
  read_plain_activation(config, spec, "hidden_act", "gelu_pytorch_tanh");
  spec.norm = NormKind::layer_norm;
  spec.qkv_bias = spec.output_bias = spec.feed_forward_bias = config.flag("use_bias", true);
  read_dropouts(config, spec, "embedding_dropout", "residual_dropout", "attention_dropout", 0, 0);
  read_window(config, spec, 0, 0);
}

void read_gemma(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {16, 256, 8192, true});
  set_attention_bias(config, spec);
  spec.activation = Activation::gelu_gated;  // whatever hidden_act says
}

void read_gemma2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {4, 256, 8192, true});
  set_attention_bias(config, spec);
  spec.activation = gated_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_placement = NormPlacement::sandwich;
  const auto cap = [&config](const char* key, double fallback) {
    return config.mentions(key) && !config.has(key) ? 0 : config.number(key, fallback, 0, 1e6);
  };
  spec.attention_softcap = cap("attn_logit_softcapping", 50);
  spec.logit_softcap = cap("final_logit_softcapping", 30);
  read_window(config, spec, 4096, 2);
}

void read_gemma3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {4, 256, 131'072, true});
  set_attention_bias(config, spec);
  spec.activation = gated_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_placement = NormPlacement::sandwich;
  spec.query_key_norm = true;
  spec.attention_softcap = config.number("attn_logit_softcapping", 0, 0, 1e6);
  spec.logit_softcap = config.number("final_logit_softcapping", 0, 0, 1e6);
  read_window(config, spec, 4096, config.integer("sliding_window_pattern", 6));
}

void read_mixtral(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 131'072, false});
  read_window(config, spec, 0, 0);
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward};
}

namespace {

void read_qwen_experts(const HfObject& config, ModelSpec& spec, bool shares) {
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = config.required("moe_intermediate_size"),
                  .shared_width = shares ? config.required("shared_expert_intermediate_size") : 0,
                  .every = config.integer("decoder_sparse_step", 1),
                  .shared_gate = shares};
  if (const std::vector<std::int64_t> dense = config.integers("mlp_only_layers"); !dense.empty())
    list_dense_layers(spec, dense);
}

}  // namespace

void read_qwen2_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {16, 0, 32'768, false});
  spec.qkv_bias = config.flag("qkv_bias", true);
  read_qwen2_window(config, spec);
  read_qwen_experts(config, spec, true);
}

void read_qwen3_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {4, 0, 32'768, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  read_qwen2_window(config, spec);
  read_qwen_experts(config, spec, false);
}

namespace {

// Softmax attention in the layers that full_attention_interval says, or that layer_types lists at such an interval, a
// gated delta rule in the others.
void read_delta_rule_shape(const HfObject& config, ModelSpec& spec, const char* width) {
  read_llama_shape(config, spec, {2, 256, 32'768, false, width});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  spec.attention_gate = config.flag("attn_output_gate", true);
  spec.linear = {.key_heads = config.required("linear_num_key_heads"),
                 .value_heads = config.required("linear_num_value_heads"),
                 .key_dim = config.required("linear_key_head_dim"),
                 .value_dim = config.required("linear_value_head_dim"),
                 .convolution = config.integer("linear_conv_kernel_dim", 4),
                 .full_every = config.integer("full_attention_interval", 4)};
  for (std::int64_t i = 0; i < config.size("layer_types"); ++i)
    if ((config.text_at("layer_types", i) == "linear_attention") != (spec.block(i).mixer == Mixer::delta_rule))
      config.unsupported("layer_types", "layers of softmax attention elsewhere than at an interval");
}

}  // namespace

void read_qwen3_next(const HfObject& config, ModelSpec& spec) {
  read_delta_rule_shape(config, spec, "intermediate_size");
  read_qwen_experts(config, spec, true);
}

// All layers have experts, and no width but theirs is said.
void read_qwen3_5_moe(const HfObject& config, ModelSpec& spec) {
  read_delta_rule_shape(config, spec, "moe_intermediate_size");
  read_qwen_experts(config, spec, true);
}

void read_qwen3_5(const HfObject& config, ModelSpec& spec) { read_delta_rule_shape(config, spec, "intermediate_size"); }

void read_olmoe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 4096, false});
  set_attention_bias(config, spec);
  spec.wide_query_key_norm = true;
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward};
}

void read_deepseek_experts(const HfObject& config, ModelSpec& spec, std::int64_t dense_layers, bool selection_bias) {
  const bool is_listed = config.is_list("moe_layer_freq");
  if (!is_listed && config.integer("moe_layer_freq", 1) != 1)
    config.unsupported("moe_layer_freq", "experts in some layers only");
  const std::int64_t width = config.required("moe_intermediate_size");
  const bool shares_none = config.mentions("n_shared_experts") && !config.has("n_shared_experts");
  spec.experts = {.count = config.required("n_routed_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = shares_none ? 0 : config.required("n_shared_experts", 0) * width,
                  .first_dense_layers = config.integer("first_k_dense_replace", dense_layers, 0),
                  .selection_bias = selection_bias};
  const std::int64_t groups = config.integer("n_group", 0);
  if (groups > 1) spec.experts.groups = groups;
  if (groups > 1) spec.experts.chosen_groups = config.integer("topk_group", 1);
  read_feed_forward_types(config, spec);
  if (!is_listed) return;
  const std::vector<std::int64_t> sparse = config.integers("moe_layer_freq");
  std::vector<std::int64_t> dense;
  for (std::size_t i = 0; i < sparse.size(); ++i)
    if (sparse[i] == 0) dense.push_back(static_cast<std::int64_t>(i));
  spec.experts.first_dense_layers = 0;
  list_dense_layers(spec, dense);
}

void read_latent(const HfObject& config, ModelSpec& spec) {
  const bool direct = config.mentions("q_lora_rank") && !config.has("q_lora_rank");
  spec.latent = {.query_rank = direct ? 0 : config.required("q_lora_rank"),
                 .kv_rank = config.required("kv_lora_rank"),
                 .rope_dim = config.required("qk_rope_head_dim"),
                 .nope_dim = config.required("qk_nope_head_dim"),
                 .value_dim = config.required("v_head_dim")};
  spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
  spec.kv_heads = spec.heads;
}

void read_deepseek_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 0, 2048, false});
  set_attention_bias(config, spec);
  read_deepseek_experts(config, spec, 0, false);
}

void read_deepseek_v2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  read_latent(config, spec);
  read_deepseek_experts(config, spec, 0, false);
}

void read_deepseek_v3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {128, 0, 4096, false});
  set_attention_bias(config, spec);
  read_latent(config, spec);
  read_deepseek_experts(config, spec, 3, true);
}

void read_deepseek_v32(const HfObject& config, ModelSpec& spec) {
  read_deepseek_v3(config, spec);
  if (spec.latent.query_rank == 0) config.unsupported("q_lora_rank", "an indexer without a bottleneck of queries");
  spec.indexer = {.heads = config.required("index_n_heads"),
                  .head_dim = config.required("index_head_dim"),
                  .keys = config.required("index_topk")};
}

void read_gpt_oss(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 64, 131'072, false});
  set_attention_bias(config, spec, true);
  read_window(config, spec, 128, 2);
  spec.attention_sinks = true;
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward,
                  .bias = true};
}

void read_glm4_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 131'072, false});
  spec.qkv_bias = config.flag("attention_bias", false);
  spec.query_key_norm = config.flag("use_qk_norm", false);
  read_deepseek_experts(config, spec, 1, true);
}

void read_minimax_m2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 196'608, false});
  if (config.flag("use_qk_norm", true)) {
    if (config.text("qk_norm_type", "per_layer") != "per_layer")
      config.unsupported("qk_norm_type", "a norm of each head apart");
    spec.wide_query_key_norm = true;
  }
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward,
                  .selection_bias = config.flag("use_routing_bias", true)};
}

// The text model. Its chunks of attention are windows here.
void read_llama4(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 131'072, false});
  set_attention_bias(config, spec);
  const std::int64_t width = spec.feed_forward;
  spec.feed_forward = config.required("intermediate_size_mlp");
  spec.attention_window = config.integer("attention_chunk_size", 8192, 0);
  spec.global_every = spec.attention_window == 0 ? 0 : config.integer("no_rope_layer_interval", 4);
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.integer("num_experts_per_tok", 1),
                  .width = width,
                  .shared_width = width,
                  .every = config.integer("interleave_moe_layer_step", 1)};
}

}  // namespace spillway::models::hf
