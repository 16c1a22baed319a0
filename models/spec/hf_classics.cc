// GPT-2, GPT-BigCode, Qwen 1, OPT, MPT, BLOOM, GPT-Neo, GPT-NeoX, GPT-J, OLMo, Falcon, Phi, BERT, RoBERTa, ModernBERT,
// ViT and T5.
#include "models/spec/hf_readers.h"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace spillway::models::hf {

namespace {

void set_all_biases(ModelSpec& spec, bool present) {
  spec.qkv_bias = spec.output_bias = spec.feed_forward_bias = present;
}

void finish_gpt_shape(ModelSpec& spec) {
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.hidden / spec.heads;
}

}  // namespace

void read_gpt2(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("n_embd");
  spec.layers = config.required("n_layer");
  spec.heads = config.required("n_head");
  spec.feed_forward = config.integer("n_inner", 4 * spec.hidden);
  spec.max_positions = config.required("n_positions");
  read_plain_activation(config, spec, "activation_function", "gelu_new");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  if (config.flag("add_cross_attention", false)) config.unsupported("add_cross_attention", "cross attention in GPT-2");
  read_dropouts(config, spec, "embd_pdrop", "resid_pdrop", "attn_pdrop", 0.1, 0.1);
  spec.fused_qkv = true;
  set_all_biases(spec, true);
  finish_gpt_shape(spec);
}

// StarCoder: one head of keys and values.
void read_gpt_bigcode(const HfObject& config, ModelSpec& spec) {
  read_gpt2(config, spec);
  if (!config.flag("multi_query", true)) return;
  spec.kv_heads = 1;
  spec.fused_qkv = false;
}

// The first Qwen: its width is of both halves.
void read_qwen(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = spec.kv_heads = config.required("num_attention_heads");
  spec.head_dim = config.integer("kv_channels", spec.hidden / spec.heads);
  spec.feed_forward = config.required("intermediate_size") / 2;
  spec.max_positions = config.integer("seq_length", 8192);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.activation = Activation::silu_gated;
  spec.qkv_bias = true;
  if (!config.flag("no_bias", true)) config.unsupported("no_bias", "biases beside those of queries, keys and values");
}

void read_opt(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  spec.feed_forward = config.required("ffn_dim");
  spec.max_positions = config.required("max_position_embeddings");
  spec.position_offset = 2;
  read_plain_activation(config, spec, "activation_function", "relu");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  const std::int64_t width = config.integer("word_embed_proj_dim", spec.hidden);
  if (width != spec.hidden) spec.embedding_width = width;
  if (!config.flag("do_layer_norm_before", true)) {  // without a norm of the embedding
    if (width == spec.hidden) config.unsupported("do_layer_norm_before", "post-norms behind an embedding as wide");
    spec.norm_placement = NormPlacement::post;
  } else if (width != spec.hidden) {
    config.unsupported("word_embed_proj_dim", "a narrow embedding with norms before the layers' parts");
  }
  if (!config.flag("layer_norm_elementwise_affine", true))
    config.unsupported("layer_norm_elementwise_affine", "a norm without weights");
  spec.dropout = config.number("dropout", 0.1, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  set_all_biases(spec, config.flag("enable_bias", true));
  finish_gpt_shape(spec);
}

void read_mpt(const HfObject& config, ModelSpec& spec) {
  const HfObject attention = config.object("attn_config");
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("d_model");
  spec.layers = config.required("n_layers");
  spec.heads = config.required("n_heads");
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
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  spec.feed_forward = config.required("intermediate_size");
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  spec.positions = Positions::rotary;
  read_plain_activation(config, spec, "hidden_act", "gelu");
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  if (config.flag("use_parallel_residual", true)) spec.block_layout = BlockLayout::parallel;
  spec.dropout = config.number("hidden_dropout", 0, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  set_attention_bias(config, spec, true);
  spec.feed_forward_bias = true;
  finish_gpt_shape(spec);
}

// One norm for attention and feed-forward block, or in the 40b kind one each.
void read_falcon(const HfObject& config, ModelSpec& spec) {
  const bool is_wide = config.flag("new_decoder_architecture", false);
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  spec.feed_forward = config.integer("ffn_hidden_size", 4 * spec.hidden);
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  spec.positions = config.flag("alibi", false) ? Positions::alibi : Positions::rotary;
  read_plain_activation(config, spec, "activation", "gelu");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.dropout = config.number("hidden_dropout", 0, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  set_all_biases(spec, config.flag("bias", false));
  finish_gpt_shape(spec);
  if (is_wide)
    spec.kv_heads = config.integer("num_kv_heads", spec.heads);
  else if (config.flag("multi_query", true))
    spec.kv_heads = 1;
  const bool has_two_norms = config.integer("num_ln_in_parallel_attn", is_wide ? 2 : 1) == 2;
  if (is_wide || config.flag("parallel_attn", true))
    spec.block_layout = is_wide && has_two_norms ? BlockLayout::parallel : BlockLayout::parallel_one_norm;
}

void read_phi(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  read_plain_activation(config, spec, "hidden_act", "gelu_new");
  spec.dropout = config.number("resid_pdrop", 0, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  if (config.number("embd_pdrop", 0, 0, 1) != spec.dropout)
    spec.notes.push_back("embd_pdrop: the embedding's dropout is taken as resid_pdrop, as much as that of a layer");
  spec.norm = NormKind::layer_norm;
  spec.block_layout = BlockLayout::parallel_one_norm;
  if (config.flag("qk_layernorm", false)) config.unsupported("qk_layernorm", "Phi with norms of queries and keys");
  set_all_biases(spec, true);
  spec.head_bias = true;
}

void read_gptj(const HfObject& config, ModelSpec& spec) {
  read_gpt2(config, spec);
  spec.positions = Positions::rotary;
  spec.block_layout = BlockLayout::parallel_one_norm;
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.fused_qkv = spec.qkv_bias = spec.output_bias = false;
  spec.head_bias = true;
}

// Layers without a window, and with one, in turns.
void read_gpt_neo(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_layers");
  spec.heads = config.required("num_heads");
  spec.feed_forward = config.integer("intermediate_size", 4 * spec.hidden);
  spec.max_positions = config.integer("max_position_embeddings", 2048);
  read_plain_activation(config, spec, "activation_function", "gelu_new");
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  read_dropouts(config, spec, "embed_dropout", "resid_dropout", "attention_dropout", 0, 0);
  spec.output_bias = spec.feed_forward_bias = true;
  finish_gpt_shape(spec);
  const std::vector<std::string> kinds = config.texts("attention_layers");
  if (static_cast<std::int64_t>(kinds.size()) != spec.layers)
    config.fail("attention_layers", "not one for each layer", "add it, as the model's published config.json has it");
  spec.attention_window = config.integer("window_size", 256);
  list_windows(spec, [&kinds](std::int64_t layer) { return kinds[static_cast<std::size_t>(layer)] == "global"; });
}

void read_bloom(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required(config.has("n_embed") ? "n_embed" : "hidden_size");
  spec.layers = config.required(config.has("n_layer") ? "n_layer" : "num_hidden_layers");
  spec.heads = config.required(config.has("n_head") ? "n_head" : "num_attention_heads");
  spec.feed_forward = 4 * spec.hidden;
  constexpr std::int64_t usual = 2048;  // its positions have no end
  spec.max_positions = config.integer("seq_length", usual);
  spec.positions = Positions::alibi;
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.dropout = config.number("hidden_dropout", 0, 0, 1);
  spec.attention_dropout = config.number("attention_dropout", 0, 0, 1);
  spec.embedding_norm = spec.fused_qkv = true;
  set_all_biases(spec, true);
  finish_gpt_shape(spec);
}

// Llama with LayerNorms that have no weights.
void read_olmo(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  spec.norm = NormKind::layer_norm;
  spec.norm_weights = spec.norm_bias = false;
}

namespace {

void read_encoder(const HfObject& config, ModelSpec& spec) {
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  spec.feed_forward = config.required("intermediate_size");
  read_plain_activation(config, spec, "hidden_act", "gelu");
  spec.mask = AttentionMask::bidirectional;
  set_all_biases(spec, true);
  finish_gpt_shape(spec);
}

}  // namespace

void read_bert(const HfObject& config, ModelSpec& spec) {
  read_encoder(config, spec);
  spec.vocabulary = config.required("vocab_size");
  spec.max_positions = config.required("max_position_embeddings");
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
  spec.vocabulary = config.required("vocab_size");
  spec.position_offset = 2;
  spec.max_positions -= spec.position_offset;
  if (spec.max_positions < 1)
    config.fail("max_position_embeddings", "nothing left after two reserved rows", "correct it");
  spec.pretraining_heads = false;
  spec.masked_lm_head = true;
}

// Gated, with rotary positions, windows to both sides in two layers of three, and no biases but the head's.
void read_modernbert(const HfObject& config, ModelSpec& spec) {
  read_llama_sizes(config, spec, {0, 0, 8192, true});
  spec.activation = gated_activation(config, "hidden_activation", "gelu");
  spec.mask = AttentionMask::bidirectional;
  spec.norm = NormKind::layer_norm;
  spec.norm_bias = config.flag("norm_bias", false);
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  spec.embedding_norm = spec.masked_lm_head = true;
  spec.fused_qkv = false;
  read_dropouts(config, spec, "embedding_dropout", "mlp_dropout", "attention_dropout", 0, 0);
  if (!config.flag("decoder_bias", true)) config.unsupported("decoder_bias", "a masked-LM head without a bias");
  if (config.flag("classifier_bias", false) != spec.norm_bias)
    config.unsupported("classifier_bias", "a masked-LM head with other biases than the norms");
  const std::int64_t to_both_sides = config.integer("local_attention", 128, 0),
                     every = config.integer("global_attn_every_n_layers", 3);
  spec.attention_window = to_both_sides / 2;
  if (spec.attention_window > 0) list_windows(spec, [every](std::int64_t layer) { return layer % every == 0; });
}

void read_vit(const HfObject& config, ModelSpec& spec) {
  read_encoder(config, spec);
  spec.patches = {.image = config.required("image_size"),
                  .patch = config.required("patch_size"),
                  .channels = config.integer("num_channels", 3)};
  spec.max_positions = spec.patches.count() + 1;
  spec.dropout = config.number("hidden_dropout_prob", 0, 0, 1);
  spec.attention_dropout = config.number("attention_probs_dropout_prob", 0, 0, 1);
  spec.qkv_bias = config.flag("qkv_bias", true);
  const std::int64_t labels = config.size("id2label");
  spec.classes = labels > 0 ? labels : config.integer("num_labels", 2);
}

namespace {

void read_t5_kind(const HfObject& config, ModelSpec& spec, bool tied, const std::string& projection) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("d_model");
  spec.feed_forward = config.required("d_ff");
  spec.encoder_layers = config.required("num_layers");
  spec.layers = config.integer("num_decoder_layers", spec.encoder_layers);
  spec.heads = spec.kv_heads = config.required("num_heads");
  spec.head_dim = config.required("d_kv");
  spec.max_positions = config.integer("n_positions", 512);
  spec.tied_embeddings = config.flag("tie_word_embeddings", tied);
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
    spec.gelu_new = true;  // whatever dense_act_fn says
  } else if (kind == "gated-silu") {
    spec.activation = Activation::silu_gated;
  } else {
    config.unsupported("feed_forward_proj", fmt::format("\"{}\"", kind));
  }
}

}  // namespace

void read_t5(const HfObject& config, ModelSpec& spec) { read_t5_kind(config, spec, true, "relu"); }

void read_mt5(const HfObject& config, ModelSpec& spec) { read_t5_kind(config, spec, false, "gated-gelu"); }

}  // namespace spillway::models::hf
