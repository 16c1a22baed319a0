#include "models/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/hf_object.h"
#include "models/model_check.h"
#include "traces/base/nearest_name.h"

namespace spillway {
namespace {

// Defaults of a configuration class of the Llama family. 0 key heads: as many as query heads; 0 head_dim: hidden/heads.
struct Defaults {
  std::int64_t vocabulary, hidden, feed_forward, layers, heads, kv_heads, head_dim, positions;
  bool tied;
};

bool is_gelu(const std::string& name) {
  return name == "gelu" || name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh";
}

Activation plain_activation(const HfObject& config, const char* key, const std::string& fallback) {
  const std::string name = config.text(key, fallback);
  if (is_gelu(name)) return Activation::gelu;
  if (name == "relu") return Activation::relu;
  config.unsupported(key, fmt::format("activation \"{}\"", name));
}

Activation gated_activation(const HfObject& config, const char* key, const std::string& fallback) {
  const std::string name = config.text(key, fallback);
  if (is_gelu(name)) return Activation::gelu_gated;
  if (name == "silu" || name == "swish") return Activation::silu_gated;
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
  spec.vocabulary = config.integer("vocab_size", defaults.vocabulary);
  spec.hidden = config.integer("hidden_size", defaults.hidden);
  spec.feed_forward = config.integer("intermediate_size", defaults.feed_forward);
  spec.layers = config.integer("num_hidden_layers", defaults.layers);
  spec.heads = config.integer("num_attention_heads", defaults.heads);
  const bool every_head = defaults.kv_heads == 0 || config.mentions("num_key_value_heads");
  spec.kv_heads = config.integer("num_key_value_heads", every_head ? spec.heads : defaults.kv_heads);
  const bool divided = defaults.head_dim == 0 || config.mentions("head_dim");
  spec.head_dim = config.integer("head_dim", divided ? spec.hidden / spec.heads : defaults.head_dim);
  spec.max_positions = config.integer("max_position_embeddings", defaults.positions);
  spec.tied_embeddings = config.flag("tie_word_embeddings", defaults.tied);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.activation = gated_activation(config, "hidden_act", "silu");
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
}

// "layer_types" names each layer's attention; else `every`-th layers are global (0: none).
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
  if (spec.global_every == 1) spec.attention_window = spec.global_every = 0;
  if (spec.attention_window == 0 && first == global.end())
    config.fail("sliding_window", "missing, but layers have a window", "add it");
  for (std::int64_t layer = 0; layer < listed; ++layer)
    if (global[static_cast<std::size_t>(layer)] != (spec.window_of(layer) == 0))
      config.unsupported("layer_types", "a pattern without a period");
}

void set_attention_bias(const HfObject& config, ModelSpec& spec, bool fallback = false) {
  spec.qkv_bias = spec.output_bias = config.flag("attention_bias", fallback);
}

void read_llama(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32'000, 4096, 11'008, 32, 32, 0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
}

void read_mistral(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32'000, 4096, 14'336, 32, 32, 8, 0, 131'072, false});
  read_window(config, spec, 4096, 0);
}

void read_phi3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32'064, 3072, 8192, 32, 32, 0, 0, 4096, false});
  read_dropouts(config, spec, "embd_pdrop", "resid_pdrop", "attention_dropout", 0, 0);
  read_window(config, spec, 0, 0);
}

void read_qwen2_window(const HfObject& config, ModelSpec& spec) {
  if (!config.flag("use_sliding_window", false)) return;
  const std::int64_t full = config.integer("max_window_layers", 28, 0);
  if (full >= spec.layers) return;
  if (full > 0) config.unsupported("max_window_layers", "a window in the last layers alone");
  read_window(config, spec, 4096, 0);
}

void read_qwen2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {151'936, 4096, 22'016, 32, 32, 32, 0, 32'768, false});
  spec.qkv_bias = true;
  read_qwen2_window(config, spec);
}

void read_qwen3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {151'936, 4096, 22'016, 32, 32, 32, 128, 32'768, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  read_qwen2_window(config, spec);
}

void read_olmo2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {50'304, 4096, 11'008, 32, 32, 0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.norm_placement = NormPlacement::branch;
  spec.wide_query_key_norm = true;
}

void read_olmo3(const HfObject& config, ModelSpec& spec) {
  read_olmo2(config, spec);
  read_window(config, spec, 4096, 4);
}

void read_cohere(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {256'000, 8192, 22'528, 40, 64, 0, 0, 8192, true});
  set_attention_bias(config, spec);
  spec.norm = NormKind::layer_norm;
  spec.norm_bias = false;
  spec.block_layout = BlockLayout::parallel_one_norm;
  if (config.flag("use_qk_norm", false)) config.unsupported("use_qk_norm", "a norm with weights of its own per head");
}

void read_starcoder2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {49'152, 3072, 12'288, 30, 24, 2, 0, 4096, true});
  spec.activation = plain_activation(config, "hidden_act", "gelu_pytorch_tanh");
  spec.norm = NormKind::layer_norm;
  spec.qkv_bias = spec.output_bias = spec.feed_forward_bias = config.flag("use_bias", true);
  read_dropouts(config, spec, "embedding_dropout", "residual_dropout", "attention_dropout", 0, 0);
  read_window(config, spec, 0, 0);
}

void read_gemma(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {256'000, 3072, 24'576, 28, 16, 16, 256, 8192, true});
  set_attention_bias(config, spec);
  spec.activation = Activation::gelu_gated;  // whatever hidden_act says
}

void read_gemma2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {256'000, 2304, 9216, 26, 8, 4, 256, 8192, true});
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
  read_llama_shape(config, spec, {262'208, 2304, 9216, 26, 8, 4, 256, 131'072, true});
  set_attention_bias(config, spec);
  spec.activation = gated_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_placement = NormPlacement::sandwich;
  spec.query_key_norm = true;
  spec.attention_softcap = config.number("attn_logit_softcapping", 0, 0, 1e6);
  spec.logit_softcap = config.number("final_logit_softcapping", 0, 0, 1e6);
  read_window(config, spec, 4096, config.integer("sliding_window_pattern", 6));
}

void read_mixtral(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {32'000, 4096, 14'336, 32, 32, 8, 0, 131'072, false});
  read_window(config, spec, 0, 0);
  spec.experts = {.count = config.integer("num_local_experts", 8),
                  .active = config.integer("num_experts_per_tok", 2),
                  .width = spec.feed_forward};
}

void refuse_dense_list(const HfObject& config) {
  if (config.size("mlp_only_layers") > 0) config.unsupported("mlp_only_layers", "a list of dense layers");
}

void read_qwen2_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {151'936, 2048, 5632, 24, 16, 16, 0, 32'768, false});
  spec.qkv_bias = config.flag("qkv_bias", true);
  read_qwen2_window(config, spec);
  refuse_dense_list(config);
  spec.experts = {.count = config.integer("num_experts", 60),
                  .active = config.integer("num_experts_per_tok", 4),
                  .width = config.integer("moe_intermediate_size", 1408),
                  .shared_width = config.integer("shared_expert_intermediate_size", 5632),
                  .every = config.integer("decoder_sparse_step", 1),
                  .shared_gate = true};
}

void read_qwen3_moe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {151'936, 2048, 6144, 24, 32, 4, 0, 32'768, false});
  set_attention_bias(config, spec);
  spec.query_key_norm = true;
  read_qwen2_window(config, spec);
  refuse_dense_list(config);
  spec.experts = {.count = config.integer("num_experts", 128),
                  .active = config.integer("num_experts_per_tok", 8),
                  .width = config.integer("moe_intermediate_size", 768),
                  .every = config.integer("decoder_sparse_step", 1)};
}

void read_olmoe(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {50'304, 2048, 2048, 16, 16, 0, 0, 4096, false});
  set_attention_bias(config, spec);
  spec.wide_query_key_norm = true;
  spec.experts = {.count = config.integer("num_experts", 64),
                  .active = config.integer("num_experts_per_tok", 8),
                  .width = spec.feed_forward};
}

void read_deepseek_experts(const HfObject& config, ModelSpec& spec, const Experts& defaults) {
  if (config.integer("moe_layer_freq", 1) != 1) config.unsupported("moe_layer_freq", "experts in some layers only");
  const std::int64_t width = config.integer("moe_intermediate_size", defaults.width);
  spec.experts = {.count = config.integer("n_routed_experts", defaults.count),
                  .active = config.integer("num_experts_per_tok", defaults.active),
                  .width = width,
                  .shared_width = config.integer("n_shared_experts", defaults.shared_width) * width,
                  .first_dense_layers = config.integer("first_k_dense_replace", defaults.first_dense_layers, 0),
                  .selection_bias = defaults.selection_bias};
}

void read_latent(const HfObject& config, ModelSpec& spec) {
  const bool direct = config.mentions("q_lora_rank") && !config.has("q_lora_rank");
  spec.latent = {.query_rank = direct ? 0 : config.integer("q_lora_rank", 1536),
                 .kv_rank = config.integer("kv_lora_rank", 512),
                 .rope_dim = config.integer("qk_rope_head_dim", 64),
                 .nope_dim = config.integer("qk_nope_head_dim", 128),
                 .value_dim = config.integer("v_head_dim", 128)};
  spec.head_dim = spec.latent.nope_dim + spec.latent.rope_dim;
  spec.kv_heads = spec.heads;
}

void read_deepseek_moe(const HfObject& config, ModelSpec& spec) {
  for (const char* key : {"n_routed_experts", "n_shared_experts", "num_experts_per_tok"}) config.need(key);
  read_llama_shape(config, spec, {102'400, 4096, 11'008, 30, 32, 32, 0, 2048, false});
  set_attention_bias(config, spec);
  read_deepseek_experts(config, spec, {.width = 1407});
}

void read_deepseek_v2(const HfObject& config, ModelSpec& spec) {
  config.need("num_experts_per_tok");
  read_llama_shape(config, spec, {32'000, 4096, 11'008, 32, 32, 0, 0, 2048, false});
  set_attention_bias(config, spec);
  read_latent(config, spec);
  read_deepseek_experts(config, spec, {.count = 64, .width = 1407, .shared_width = 2});
}

void read_deepseek_v3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {129'280, 7168, 18'432, 61, 128, 128, 0, 4096, false});
  set_attention_bias(config, spec);
  read_latent(config, spec);
  read_deepseek_experts(
      config, spec,
      {.count = 256, .active = 8, .width = 2048, .shared_width = 1, .first_dense_layers = 3, .selection_bias = true});
}

void set_all_biases(ModelSpec& spec, bool present) {
  spec.qkv_bias = spec.output_bias = spec.feed_forward_bias = present;
}

void finish_gpt_shape(ModelSpec& spec) {
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.hidden / spec.heads;
}

void read_gpt2(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.integer("vocab_size", 50'257);
  spec.hidden = config.integer("n_embd", 768);
  spec.layers = config.integer("n_layer", 12);
  spec.heads = config.integer("n_head", 12);
  spec.feed_forward = config.integer("n_inner", 4 * spec.hidden);
  spec.max_positions = config.integer("n_positions", 1024);
  spec.activation = plain_activation(config, "activation_function", "gelu_new");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  if (config.flag("add_cross_attention", false)) config.unsupported("add_cross_attention", "cross attention in GPT-2");
  read_dropouts(config, spec, "embd_pdrop", "resid_pdrop", "attn_pdrop", 0.1, 0.1);
  spec.fused_qkv = true;
  set_all_biases(spec, true);
  finish_gpt_shape(spec);
}

void read_opt(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.integer("vocab_size", 50'272);
  spec.hidden = config.integer("hidden_size", 768);
  spec.layers = config.integer("num_hidden_layers", 12);
  spec.heads = config.integer("num_attention_heads", 12);
  spec.feed_forward = config.integer("ffn_dim", 3072);
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  spec.position_offset = 2;
  spec.activation = plain_activation(config, "activation_function", "relu");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  if (config.integer("word_embed_proj_dim", spec.hidden) != spec.hidden)
    config.unsupported("word_embed_proj_dim", "an embedding narrower than the layers");
  if (!config.flag("do_layer_norm_before", true)) config.unsupported("do_layer_norm_before", "OPT with post-norms");
  if (!config.flag("layer_norm_elementwise_affine", true))
    config.unsupported("layer_norm_elementwise_affine", "a norm without weights");
  spec.dropout = config.number("dropout", 0.1, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  set_all_biases(spec, config.flag("enable_bias", true));
  finish_gpt_shape(spec);
}

void read_mpt(const HfObject& config, ModelSpec& spec) {
  const HfObject attention = config.object("attn_config");
  spec.vocabulary = config.integer("vocab_size", 50'368);
  spec.hidden = config.integer("d_model", 2048);
  spec.layers = config.integer("n_layers", 24);
  spec.heads = config.integer("n_heads", 16);
  spec.feed_forward = config.integer("expansion_ratio", 4) * spec.hidden;
  spec.max_positions = config.integer("max_seq_len", 2048);
  spec.positions = attention.flag("alibi", true) ? Positions::alibi : Positions::learned;
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  set_all_biases(spec, !config.flag("no_bias", true));
  spec.norm_bias = spec.qkv_bias;
  read_dropouts(config, spec, "emb_pdrop", "resid_pdrop", "resid_pdrop", 0, 0);
  spec.attention_dropout = attention.number("attn_pdrop", 0, 0, 1);
  if (attention.flag("qk_ln", false)) attention.unsupported("qk_ln", "MPT with norms of queries and keys");
  finish_gpt_shape(spec);
  const std::string kind = attention.text("attn_type", "multihead_attention");
  if (kind == "multiquery_attention") spec.kv_heads = 1;
  if (kind == "grouped_query_attention") spec.kv_heads = attention.integer("kv_n_heads", spec.heads);
  spec.fused_qkv = spec.kv_heads == spec.heads;
}

void read_gpt_neox(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.integer("vocab_size", 50'432);
  spec.hidden = config.integer("hidden_size", 6144);
  spec.layers = config.integer("num_hidden_layers", 44);
  spec.heads = config.integer("num_attention_heads", 64);
  spec.feed_forward = config.integer("intermediate_size", 24'576);
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  spec.positions = Positions::rotary;
  spec.activation = plain_activation(config, "hidden_act", "gelu");
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  if (config.flag("use_parallel_residual", true)) spec.block_layout = BlockLayout::parallel;
  spec.dropout = config.number("hidden_dropout", 0, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  set_attention_bias(config, spec, true);
  spec.feed_forward_bias = true;
  finish_gpt_shape(spec);
}

void read_encoder(const HfObject& config, ModelSpec& spec) {
  spec.hidden = config.integer("hidden_size", 768);
  spec.layers = config.integer("num_hidden_layers", 12);
  spec.heads = config.integer("num_attention_heads", 12);
  spec.feed_forward = config.integer("intermediate_size", 3072);
  spec.activation = plain_activation(config, "hidden_act", "gelu");
  spec.mask = AttentionMask::bidirectional;
  set_all_biases(spec, true);
  finish_gpt_shape(spec);
}

void read_bert(const HfObject& config, ModelSpec& spec) {
  read_encoder(config, spec);
  spec.vocabulary = config.integer("vocab_size", 30'522);
  spec.max_positions = config.integer("max_position_embeddings", 512);
  spec.token_types = config.integer("type_vocab_size", 2);
  spec.dropout = config.number("hidden_dropout_prob", 0.1, 0, 1);
  spec.attention_dropout = config.number("attention_probs_dropout_prob", 0.1, 0, 1);
  spec.norm_placement = NormPlacement::post;
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  if (config.text("position_embedding_type", "absolute") != "absolute")
    config.unsupported("position_embedding_type", "BERT with relative positions");
  if (config.flag("is_decoder", false)) config.unsupported("is_decoder", "BERT as a decoder");
  const bool masked = config.size("architectures") > 0 && config.text_at("architectures", 0) == "BertForMaskedLM";
  spec.masked_lm_head = masked;
  spec.pretraining_heads = !masked;
}

void read_roberta(const HfObject& config, ModelSpec& spec) {
  read_bert(config, spec);
  spec.vocabulary = config.integer("vocab_size", 50'265);
  spec.position_offset = 2;
  spec.max_positions -= spec.position_offset;
  if (spec.max_positions < 1)
    config.fail("max_position_embeddings", "nothing left after two reserved rows", "correct it");
  spec.pretraining_heads = false;
  spec.masked_lm_head = true;
}

void read_vit(const HfObject& config, ModelSpec& spec) {
  read_encoder(config, spec);
  spec.patches = {.image = config.integer("image_size", 224),
                  .patch = config.integer("patch_size", 16),
                  .channels = config.integer("num_channels", 3)};
  spec.max_positions = spec.patches.count() + 1;
  spec.dropout = config.number("hidden_dropout_prob", 0, 0, 1);
  spec.attention_dropout = config.number("attention_probs_dropout_prob", 0, 0, 1);
  spec.qkv_bias = config.flag("qkv_bias", true);
  const std::int64_t labels = config.size("id2label");
  spec.classes = labels > 0 ? labels : config.integer("num_labels", 2);
}

void read_t5_kind(const HfObject& config, ModelSpec& spec, const Defaults& defaults, const std::string& projection) {
  spec.vocabulary = config.integer("vocab_size", defaults.vocabulary);
  spec.hidden = config.integer("d_model", defaults.hidden);
  spec.feed_forward = config.integer("d_ff", defaults.feed_forward);
  spec.encoder_layers = config.integer("num_layers", defaults.layers);
  spec.layers = config.integer("num_decoder_layers", spec.encoder_layers);
  spec.heads = spec.kv_heads = config.integer("num_heads", defaults.heads);
  spec.head_dim = config.integer("d_kv", defaults.head_dim);
  spec.max_positions = config.integer("n_positions", defaults.positions);
  spec.tied_embeddings = config.flag("tie_word_embeddings", defaults.tied);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::relative_bias;
  spec.position_buckets = config.integer("relative_attention_num_buckets", 32);
  spec.dropout = spec.attention_dropout = config.number("dropout_rate", 0.1, 0, 1);
  const std::string kind = config.text("feed_forward_proj", projection);
  if (kind == "relu") {
    spec.activation = Activation::relu;
  } else if (kind == "gelu") {
    spec.activation = Activation::gelu;
  } else if (kind == "gated-gelu") {
    spec.activation = Activation::gelu_gated;
  } else if (kind == "gated-silu") {
    spec.activation = Activation::silu_gated;
  } else {
    config.unsupported("feed_forward_proj", fmt::format("\"{}\"", kind));
  }
}

void read_t5(const HfObject& config, ModelSpec& spec) {
  read_t5_kind(config, spec, {32'128, 512, 2048, 6, 8, 0, 64, 512, true}, "relu");
}

void read_mt5(const HfObject& config, ModelSpec& spec) {
  read_t5_kind(config, spec, {250'112, 512, 1024, 8, 6, 0, 64, 512, false}, "gated-gelu");
}

struct Architecture {
  const char* model_type;
  std::vector<std::string> classes;  // those whose heads the reader gives
  void (*read)(const HfObject& config, ModelSpec& spec);
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"bert", {"BertForPreTraining", "BertForMaskedLM"}, read_bert},
      {"cohere", {"CohereForCausalLM"}, read_cohere},
      {"deepseek", {"DeepseekForCausalLM"}, read_deepseek_moe},
      {"deepseek_v2", {"DeepseekV2ForCausalLM"}, read_deepseek_v2},
      {"deepseek_v3", {"DeepseekV3ForCausalLM"}, read_deepseek_v3},
      {"gemma", {"GemmaForCausalLM"}, read_gemma},
      {"gemma2", {"Gemma2ForCausalLM"}, read_gemma2},
      {"gemma3_text", {"Gemma3ForCausalLM"}, read_gemma3},
      {"gpt2", {"GPT2LMHeadModel"}, read_gpt2},
      {"gpt_neox", {"GPTNeoXForCausalLM"}, read_gpt_neox},
      {"granite", {"GraniteForCausalLM"}, read_llama},
      {"kimi_k2", {"DeepseekV3ForCausalLM"}, read_deepseek_v3},
      {"llama", {"LlamaForCausalLM", "LLaMAForCausalLM"}, read_llama},
      {"mistral", {"MistralForCausalLM"}, read_mistral},
      {"mixtral", {"MixtralForCausalLM"}, read_mixtral},
      {"mpt", {"MPTForCausalLM", "MptForCausalLM"}, read_mpt},
      {"mt5", {"MT5ForConditionalGeneration"}, read_mt5},
      {"olmo2", {"Olmo2ForCausalLM"}, read_olmo2},
      {"olmo3", {"Olmo3ForCausalLM"}, read_olmo3},
      {"olmoe", {"OlmoeForCausalLM"}, read_olmoe},
      {"opt", {"OPTForCausalLM"}, read_opt},
      {"phi3", {"Phi3ForCausalLM"}, read_phi3},
      {"qwen2", {"Qwen2ForCausalLM"}, read_qwen2},
      {"qwen2_moe", {"Qwen2MoeForCausalLM"}, read_qwen2_moe},
      {"qwen3", {"Qwen3ForCausalLM"}, read_qwen3},
      {"qwen3_moe", {"Qwen3MoeForCausalLM"}, read_qwen3_moe},
      {"roberta", {"RobertaForMaskedLM"}, read_roberta},
      {"starcoder2", {"Starcoder2ForCausalLM"}, read_starcoder2},
      {"t5", {"T5ForConditionalGeneration", "T5WithLMHeadModel"}, read_t5},
      {"vit", {"ViTForImageClassification"}, read_vit},
  };
  return all;
}

const Architecture& architecture_of(const HfObject& config) {
  const std::string wanted_class = config.size("architectures") > 0 ? config.text_at("architectures", 0) : "";
  const std::string type = config.text("model_type", "");
  std::vector<std::string> types;
  for (const Architecture& candidate : architectures()) {
    types.emplace_back(candidate.model_type);
    const bool knows_class =
        std::find(candidate.classes.begin(), candidate.classes.end(), wanted_class) != candidate.classes.end();
    if (type.empty() ? knows_class : type == candidate.model_type) {
      if (!wanted_class.empty() && !knows_class)
        config.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class),
                    fmt::format("for \"{}\" spillway knows {}", type, fmt::join(candidate.classes, ", ")));
      return candidate;
    }
  }
  if (config.has("text_config"))
    config.fail("model_type", fmt::format("\"{}\", a model of several parts, is not modelled", type),
                "write the object under text_config to a file of its own and give that");
  if (type.empty()) config.fail("architectures", fmt::format("\"{}\" is not modelled", wanted_class), "add model_type");
  config.fail("model_type", fmt::format("\"{}\" is not modelled", type),
              suggest(type, types, fmt::format("spillway reads {}", fmt::join(types, ", "))));
}

// Ranges that the readers leave to one place; those of docs/schemas/model.schema.json.
void check_ranges(const HfObject& config, const ModelSpec& spec) {
  constexpr std::int64_t widest = 1 << 20;
  const auto at_most = [&config](const char* what, std::int64_t value, std::int64_t high) {
    if (value < 1 || value > high)
      config.fail("", fmt::format("{} is {}, not in 1 .. {}", what, value, high), "correct the configuration");
  };
  at_most("the number of layers", spec.layers, 4096);
  at_most("the number of encoder layers", std::max<std::int64_t>(spec.encoder_layers, 1), 4096);
  at_most("the width", spec.hidden, widest);
  at_most("the number of heads", spec.heads, 4096);
  at_most("the number of key heads", spec.kv_heads, 4096);
  at_most("the width of a head", spec.head_dim, 65'536);
  at_most("the feed-forward width", spec.feed_forward, widest);
  at_most("the number of experts", std::max<std::int64_t>(spec.experts.count, 1), 65'536);
  at_most("the width of an expert", std::max<std::int64_t>(spec.experts.width, 1), widest);
  at_most("the width of the shared experts", std::max<std::int64_t>(spec.experts.shared_width, 1), widest);
  at_most("the image", std::max<std::int64_t>(spec.patches.image, 1), 65'536);
  at_most("the number of channels", std::max<std::int64_t>(spec.patches.channels, 1), 65'536);
  at_most("a rank of latent attention", std::max<std::int64_t>({spec.latent.query_rank, spec.latent.kv_rank, 1}),
          65'536);
  at_most("the width of a value head", std::max<std::int64_t>(spec.latent.value_dim, 1), 65'536);
}

std::string name_of(const std::string& file) {
  const std::filesystem::path path(file);
  const bool generic = path.filename() == "config.json" && path.has_parent_path();
  return generic ? path.parent_path().filename().string() : path.stem().string();
}

}  // namespace

bool is_hf_config(const nlohmann::json& json) {
  return json.is_object() && !json.contains("schema") &&
         (json.contains("model_type") || json.contains("architectures"));
}

ModelSpec read_hf_config(const nlohmann::json& json, const std::string& file) {
  const HfObject config(json, file);
  const Architecture& architecture = architecture_of(config);
  ModelSpec spec;
  spec.name = name_of(file);
  spec.title = config.text("_name_or_path", spec.name);
  spec.source = fmt::format("Hugging Face configuration of a {} model", architecture.model_type);
  architecture.read(config, spec);
  check_ranges(config, spec);
  if (const auto fault = shape_fault(spec))
    config.fail("", fmt::format("{} (as {} of a model file)", fault->cause, fault->key), "correct the configuration");
  return spec;
}

}  // namespace spillway
