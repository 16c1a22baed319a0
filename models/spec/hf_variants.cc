// Llama's kin whose configurations have switches of their own, or other names for their experts.
#include "models/spec/hf_readers.h"

namespace spillway::models::hf {

void read_ministral3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 262'144, false});
  read_window(config, spec, 0, 0);
}

void read_internlm2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  spec.qkv_bias = spec.output_bias = config.flag("bias", true);
}

void read_internlm3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 32'768, false});
  spec.output_bias = spec.feed_forward_bias = config.flag("bias", false);
  spec.qkv_bias = config.flag("qkv_bias", false);
}

void read_ernie(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 131'072, true});
  spec.qkv_bias = spec.output_bias = spec.feed_forward_bias = config.flag("use_bias", false);
}

void read_ernie_moe(const HfObject& config, ModelSpec& spec) {
  read_ernie(config, spec);
  const std::int64_t width = config.alike("moe_intermediate_size", 0);
  const std::int64_t first = config.alike("moe_layer_start_index", 1);
  if (config.alike("moe_layer_end_index", -1) >= 0 && config.alike("moe_layer_end_index", -1) + 1 < spec.layers)
    config.unsupported("moe_layer_end_index", "a dense layer behind those with experts");
  spec.experts = {.count = config.alike("moe_num_experts", 0),
                  .active = config.required("moe_k"),
                  .width = width,
                  .shared_width = config.integer("moe_num_shared_experts", 0, 0) * width,
                  .first_dense_layers = first,
                  .every = config.integer("moe_layer_interval", 1),
                  .selection_bias = config.flag("moe_use_aux_free", true)};
  if (spec.experts.count == 0 || width == 0) config.fail("moe_num_experts", "no experts of a size", "correct it");
}

void read_hunyuan(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = config.flag("use_qk_norm", true);
}

void read_hunyuan_moe(const HfObject& config, ModelSpec& spec) {
  read_hunyuan(config, spec);
  const std::int64_t width = config.alike("moe_intermediate_size", spec.feed_forward);
  spec.experts = {
      .count = config.required("num_experts"),
      .active = config.alike("moe_topk", 1),
      .width = width,
      .shared_width = config.flag("use_mixed_mlp_moe", true) ? config.alike("num_shared_expert", 1) * width : 0};
}

void read_bailing_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 4096, false});
  spec.qkv_bias = config.flag("use_qkv_bias", false);
  spec.output_bias = config.flag("use_bias", false);
  spec.query_key_norm = config.flag("use_qk_norm", false);
  const std::int64_t width = config.required("moe_intermediate_size");
  const std::int64_t shared = config.integer("moe_shared_expert_intermediate_size", width);
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer("num_shared_experts", 0, 0) * shared,
                  .first_dense_layers = config.integer("first_k_dense_replace", 0, 0),
                  .selection_bias = config.flag("moe_router_enable_expert_bias", false)};
  const std::int64_t groups = config.integer("n_group", 0, 0);
  if (groups > 1) spec.experts.groups = groups;
  if (groups > 1) spec.experts.chosen_groups = config.integer("topk_group", 1);
}

void read_seed_oss(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 524'288, false});
  spec.qkv_bias = config.flag("attention_bias", true);
  spec.output_bias = config.flag("attention_out_bias", false);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
}

// Layers without rotary positions are as the others: the same sizes, and no time to speak of.
void read_smollm3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {4, 0, 32'768, true});
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  if (config.flag("use_sliding_window", false)) read_window(config, spec, 4096, 0);
}

void read_exaone4(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 0, 2048, false});
  spec.norm_placement = NormPlacement::branch;
  spec.query_key_norm = true;
  read_window(config, spec, 4096, 4);
}

void read_cohere2(const HfObject& config, ModelSpec& spec) {
  read_cohere(config, spec);
  read_window(config, spec, 4096, config.integer("sliding_window_pattern", 4));
}

void read_glm(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {2, 128, 131'072, false});
  spec.qkv_bias = config.flag("attention_bias", true);
}

void read_glm4(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {2, 128, 131'072, false});
  spec.qkv_bias = config.flag("attention_bias", false);
  spec.norm_placement = NormPlacement::sandwich;
}

namespace {

// Every layer's feed-forward blocks are experts of intermediate_size.
void read_local_experts(const HfObject& config, ModelSpec& spec) {
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward};
}

}  // namespace

void read_phimoe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 131'072, false});
  set_attention_bias(config, spec);
  read_window(config, spec, 0, 0);
  spec.norm = NormKind::layer_norm;
  spec.head_bias = config.flag("lm_head_bias", false);
  read_local_experts(config, spec);
}

void read_granite_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  read_local_experts(config, spec);
}

void read_dbrx(const HfObject& config, ModelSpec& spec) {
  const HfObject attention = config.object("attn_config"), block = config.object("ffn_config");
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("d_model");
  spec.layers = config.required("n_layers");
  spec.heads = config.required("n_heads");
  spec.kv_heads = attention.required("kv_n_heads");
  spec.head_dim = spec.hidden / spec.heads;
  spec.feed_forward = block.required("ffn_hidden_size");
  spec.max_positions = config.integer("max_seq_len", 2048);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm_bias = false;
  spec.positions = Positions::rotary;
  spec.activation = Activation::silu_gated;
  spec.experts = {
      .count = block.required("moe_num_experts"), .active = block.required("moe_top_k"), .width = spec.feed_forward};
}

namespace {

// Ungated, of squared ReLUs.
void read_squared_relu(const HfObject& config, ModelSpec& spec) {
  const std::string name = config.text("hidden_act", "relu2");
  if (name != "relu2") config.unsupported("hidden_act", "\"" + name + "\"");
  spec.activation = Activation::relu_squared;
}

}  // namespace

void read_arcee(const HfObject& config, ModelSpec& spec) {
  read_llama_sizes(config, spec, {0, 0, 4096, false});
  read_squared_relu(config, spec);
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
}

void read_nemotron(const HfObject& config, ModelSpec& spec) {
  read_llama_sizes(config, spec, {0, 0, 4096, false});
  read_squared_relu(config, spec);
  set_attention_bias(config, spec);
  spec.norm = NormKind::layer_norm;
  spec.feed_forward_bias = config.flag("mlp_bias", false);
}

void read_apertus(const HfObject& config, ModelSpec& spec) {
  read_llama_sizes(config, spec, {0, 0, 65'536, false});
  if (config.text("hidden_act", "xielu") != "xielu") config.unsupported("hidden_act", "another activation than xielu");
  spec.activation = Activation::xielu;
  set_attention_bias(config, spec);
  spec.query_key_norm = config.flag("qk_norm", true);
}

// Norms on both sides, a gate of attention's results, local layers but for every fourth.
void read_afmoe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 128, 16'384, false});
  spec.norm_placement = NormPlacement::sandwich;
  spec.query_key_norm = spec.attention_gate = true;
  read_window(config, spec, 1024, config.integer("global_attn_every_n_layers", 4));
  const std::int64_t width = config.required("moe_intermediate_size");
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer("num_shared_experts", 0, 0) * width,
                  .first_dense_layers = config.integer("num_dense_layers", 1, 0),
                  .selection_bias = true};
}

void read_dots1(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  read_window(config, spec, 0, 0);
  read_deepseek_experts(config, spec, 0, true);
}

void read_exaone_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 131'072, false});
  spec.query_key_norm = true;
  read_window(config, spec, 4096, 4);
  const std::int64_t width = config.required("moe_intermediate_size");
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer_of({"num_shared_experts", "n_shared_experts"}, 0) * width,
                  .first_dense_layers = config.integer("first_k_dense_replace", 1, 0),
                  .selection_bias = true};
  read_feed_forward_types(config, spec);
}

// Gemma 2 with norms before its sub-layers alone.
void read_vaultgemma(const HfObject& config, ModelSpec& spec) {
  read_gemma2(config, spec);
  spec.norm_placement = NormPlacement::pre;
}

void read_minicpm3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 32'768, true});
  spec.latent = {.query_rank = config.required("q_lora_rank"),
                 .kv_rank = config.required("kv_lora_rank"),
                 .rope_dim = config.required("qk_rope_head_dim"),
                 .nope_dim = config.required("qk_nope_head_dim"),
                 .value_dim = config.integer("v_head_dim", spec.hidden / spec.heads)};
  spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
  spec.kv_heads = spec.heads;
}

void read_stablelm(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32, 0, 4096, false});
  spec.norm = NormKind::layer_norm;
  spec.qkv_bias = config.flag("use_qkv_bias", false);
  if (config.flag("use_parallel_residual", false)) spec.block_layout = BlockLayout::parallel_one_norm;
  if (config.flag("qk_layernorm", false)) config.unsupported("qk_layernorm", "a norm with separate weights per head");
}

// EXAONE 3: Llama with keys of GPT-2's.
void read_exaone(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.integer_of({"num_layers", "num_hidden_layers"}, 0);
  spec.heads = config.required("num_attention_heads");
  spec.kv_heads = config.integer("num_key_value_heads", spec.heads);
  spec.head_dim = config.integer("head_dim", spec.hidden / spec.heads);
  spec.feed_forward = config.required("intermediate_size");
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.activation = gated_activation(config, "activation_function", "silu");
  spec.dropout = spec.attention_dropout = 0;
}

void read_granite_moe_shared(const HfObject& config, ModelSpec& spec) {
  read_granite_moe(config, spec);
  spec.experts.shared_width = config.integer("shared_intermediate_size", 0, 0);
}

// ChatGLM 2 and 3 and GLM-4 9B as they were published first.
void read_chatglm(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required(config.has("padded_vocab_size") ? "padded_vocab_size" : "vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.integer_of({"num_layers", "num_hidden_layers"}, 0);
  spec.heads = spec.kv_heads = config.required("num_attention_heads");
  if (config.flag("multi_query_attention", false)) spec.kv_heads = config.integer("multi_query_group_num", 1);
  spec.head_dim = config.integer("kv_channels", spec.hidden / spec.heads);
  spec.feed_forward = config.required("ffn_hidden_size");
  spec.max_positions = config.integer("seq_length", 2048);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = config.flag("rmsnorm", true) ? NormKind::rms_norm : NormKind::layer_norm;
  spec.positions = Positions::rotary;
  spec.activation = Activation::silu_gated;
  spec.qkv_bias = config.flag("add_qkv_bias", false);
  spec.output_bias = spec.feed_forward_bias = config.flag("add_bias_linear", false);
}

void read_flex_olmo(const HfObject& config, ModelSpec& spec) {
  read_olmoe(config, spec);
  spec.norm_placement = NormPlacement::branch;
}

}  // namespace spillway::models::hf
