// A configuration of a type without a reader, read by its keys: those that Llama's kin share. A key that isn't known
// may change the model, and is refused.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "models/spec/hf_readers.h"

namespace spillway::models::hf {
namespace {

// That decide no shape, or nothing that is read elsewhere.
constexpr std::array ignored = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attention_multiplier",
    "attn_implementation",
    "audio_config",
    "auto_map",
    "aux_loss_alpha",
    "base_model_tp_plan",
    "bos_token",
    "bos_token_id",
    "cache_implementation",
    "clip_qkv",
    "compression_config",
    "dtype",
    "embedding_multiplier",
    "eos_token",
    "eos_token_id",
    "ep_size",
    "fp8",
    "head_dtype",
    "id2label",
    "ignore_index",
    "image_token_id",
    "initializer_range",
    "initializer_std",
    "is_decoder",
    "label2id",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "logit_scale",
    "logits_scaling",
    "logits_to_keep",
    "max_seq_len",
    "max_window_layers",
    "model_max_length",
    "model_type",
    "moe_aux_loss_coeff",
    "moe_router_activation_func",
    "moe_router_dtype",
    "moe_router_score_function",
    "mtp_num_hidden_layers",
    "no_rope_layer_interval",
    "no_rope_layers",
    "norm_eps",
    "norm_epsilon",
    "norm_topk_prob",
    "num_logits_to_keep",
    "num_nextn_predict_layers",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "partial_rotary_factor",
    "pretraining_tp",
    "quantization_config",
    "residual_multiplier",
    "return_dict",
    "rms_norm_eps",
    "rope_interleave",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_pct",
    "rope_percentage",
    "rope_scaling",
    "rope_theta",
    "rope_type",
    "rotary_emb_base",
    "rotary_pct",
    "route_scale",
    "routed_scaling_factor",
    "router_aux_loss_coef",
    "router_dtype",
    "router_jitter_noise",
    "router_z_loss_coef",
    "score_func",
    "score_function",
    "scoring_func",
    "sep_token_id",
    "seq_aux",
    "swiglu_limit",
    "text_config",
    "tokenizer_class",
    "topk_method",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unk_token_id",
    "unsloth_fixed",
    "use_bfloat16",
    "use_cache",
    "use_flash_attn",
    "use_rope",
    "video_token_id",
    "vision_config",
    "z_loss_coeff",
};

// That are read below, by any of the readers it calls.
constexpr std::array read_here = {
    "attention_bias",
    "attention_dropout",
    "attn_logit_softcapping",
    "attn_pdrop",
    "decoder_sparse_step",
    "dropout",
    "embd_pdrop",
    "embedding_dropout",
    "final_logit_softcapping",
    "first_k_dense_replace",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_dropout",
    "hidden_size",
    "intermediate_size",
    "kv_lora_rank",
    "layer_types",
    "max_position_embeddings",
    "mlp_bias",
    "mlp_layer_types",
    "mlp_only_layers",
    "moe_intermediate_size",
    "moe_layer_freq",
    "n_group",
    "n_routed_experts",
    "n_shared_experts",
    "num_attention_heads",
    "num_dense_layers",
    "num_experts",
    "num_experts_per_tok",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_local_experts",
    "num_shared_experts",
    "q_lora_rank",
    "qk_head_dim",
    "qk_layernorm",
    "qk_nope_head_dim",
    "qk_norm",
    "qk_rope_head_dim",
    "qkv_bias",
    "resid_pdrop",
    "residual_dropout",
    "shared_expert_intermediate_size",
    "sliding_window",
    "sliding_window_pattern",
    "tie_word_embeddings",
    "topk_group",
    "use_qk_norm",
    "use_qkv_bias",
    "use_sliding_window",
    "v_head_dim",
    "vocab_size",
};

template <std::size_t count>
bool is_in(const std::array<const char*, count>& list, std::string_view key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

void refuse_unknown_keys(const HfObject& config, const std::string& type, const char* nearest) {
  std::vector<std::string> unknown;
  for (const std::string& key : config.keys())
    if (!is_in(ignored, key) && !is_in(read_here, key)) unknown.push_back(key);
  if (unknown.empty()) return;
  config.fail(unknown.front(),
              fmt::format("\"{}\" is not modelled, and {} not known of other types: {}", type,
                          unknown.size() == 1 ? "this key is" : fmt::format("{} of its keys are", unknown.size()),
                          fmt::join(unknown, ", ")),
              fmt::format("the nearest type that is read: {}; remove the keys that change no shape, or give "
                          "model_type {} where they describe one of its kind",
                          nearest, nearest));
}

void read_experts_by_keys(const HfObject& config, ModelSpec& spec, std::vector<std::string>& taken) {
  const char* key = config.has("n_routed_experts") ? "n_routed_experts"
                    : config.has("num_experts")    ? "num_experts"
                                                   : "num_local_experts";
  if (!config.has(key) || config.integer(key, 0, 0) == 0) return;
  const std::int64_t width = config.integer("moe_intermediate_size", spec.feed_forward);
  const std::int64_t shared = config.integer_of({"n_shared_experts", "num_shared_experts"}, 0) * width;
  spec.experts = {.count = config.required(key),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer("shared_expert_intermediate_size", shared, 0),
                  .first_dense_layers = config.integer_of({"first_k_dense_replace", "num_dense_layers"}, 0),
                  .every = config.integer("decoder_sparse_step", 1),
                  .selection_bias = config.text("topk_method", "") == "noaux_tc"};
  const std::int64_t groups = config.integer("n_group", 0, 0);
  if (groups > 1) spec.experts.groups = groups, spec.experts.chosen_groups = config.integer("topk_group", 1);
  if (config.is_list("moe_layer_freq") || config.integer("moe_layer_freq", 1) != 1)
    config.unsupported("moe_layer_freq", "experts in some layers only");
  if (const std::vector<std::int64_t> dense = config.integers("mlp_only_layers"); !dense.empty())
    list_dense_layers(spec, dense);
  read_feed_forward_types(config, spec);
  taken.push_back(fmt::format("experts ({})", key));
}

}  // namespace

void read_by_keys(const HfObject& config, ModelSpec& spec) {
  const std::string type = config.text("model_type", "");
  const bool is_latent = config.has("kv_lora_rank");
  const bool has_experts =
      config.has("n_routed_experts") || config.has("num_experts") || config.has("num_local_experts");
  refuse_unknown_keys(config, type, is_latent ? "deepseek_v3" : has_experts ? "qwen3_moe" : "llama");
  std::vector<std::string> taken = {"Llama's layers"};
  read_llama_sizes(config, spec, {0, 0, 2048, false});
  const char* act = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  if (config.text(act, "silu") == "relu2")  // gated in BitNet, and not in Nemotron
    config.unsupported(act, fmt::format("\"relu2\", with a gate or without, in \"{}\"", type));
  spec.activation = gated_activation(config, act, "silu");
  set_attention_bias(config, spec);
  spec.qkv_bias = config.flag("qkv_bias", config.flag("use_qkv_bias", spec.qkv_bias));
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  for (const char* key : {"use_qk_norm", "qk_norm", "qk_layernorm"})
    if (config.flag(key, false)) {
      spec.query_key_norm = true;
      taken.push_back(fmt::format("norms of each head of queries and keys ({})", key));
    }
  for (const char* key : {"dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "residual_dropout",
                          "embedding_dropout"})
    if (config.number(key, 0, 0, 1) > 0) config.unsupported(key, fmt::format("a dropout in \"{}\"", type));
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    if (config.has(key)) config.unsupported(key, fmt::format("a soft cap in \"{}\"", type));
  if (is_latent) {
    if (spec.query_key_norm) config.unsupported("kv_lora_rank", "latent attention with norms of queries and keys");
    for (std::int64_t layer = 0; layer < config.size("layer_types"); ++layer)
      if (config.text_at("layer_types", layer) != "full_attention")
        config.unsupported("layer_types", "latent attention in some layers only");
    read_latent(config, spec);
    taken.emplace_back("latent attention (kv_lora_rank)");
  } else if (config.size("layer_types") > 0 ||
             (config.flag("use_sliding_window", true) && config.has("sliding_window"))) {
    read_window(config, spec, 0, config.integer("sliding_window_pattern", 0, 0));
    if (spec.attention_window > 0 || !spec.blocks.empty()) taken.emplace_back("windows (sliding_window)");
  }
  read_experts_by_keys(config, spec, taken);
  spec.notes.push_back(
      fmt::format("\"{}\" is not a type that is known: read by its keys as {}; compare the number of "
                  "parameters with the published one",
                  type, fmt::join(taken, ", ")));
}

}  // namespace spillway::models::hf
