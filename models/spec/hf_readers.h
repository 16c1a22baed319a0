// Readers of Hugging Face configurations, one per "model_type": they fill in the shape. Sizes must be there; all else
// that is missing has the default of the transformers library's configuration class.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/spec/hf_object.h"
#include "models/spec/model_spec.h"

namespace spillway::models::hf {

// Defaults of a configuration class for what a configuration may leave out. 0 key heads: as many as query heads; 0
// head_dim: hidden / heads.
struct Defaults {
  std::int64_t kv_heads, head_dim, positions;
  bool tied;
  const char* width = "intermediate_size";  // the key of the feed-forward width
};

// The activation under `key`, of a plain or a gated feed-forward block.
void read_plain_activation(const HfObject& config, ModelSpec& spec, const char* key, const std::string& fallback);
Activation gated_activation(const HfObject& config, const char* key, const std::string& fallback);
// Three keys of dropouts; embeddings and residuals must have the same.
void read_dropouts(const HfObject& config, ModelSpec& spec, const char* embedding, const char* residual,
                   const char* attention, double fallback, double attention_fallback);
void set_attention_bias(const HfObject& config, ModelSpec& spec, bool fallback = false);
void read_llama_shape(const HfObject& config, ModelSpec& spec, const Defaults& defaults);
// The same without the activation.
void read_llama_sizes(const HfObject& config, ModelSpec& spec, const Defaults& defaults);
// "layer_types" names each layer's attention; else `every`-th layers are global (0: none).
void read_window(const HfObject& config, ModelSpec& spec, std::int64_t window, std::int64_t every);

// Windows of attention_window, or dense layers, where no period says which layers have them.
void list_windows(ModelSpec& spec, const std::function<bool(std::int64_t layer)>& is_global);
void list_dense_layers(ModelSpec& spec, const std::vector<std::int64_t>& dense);
// "mlp_layer_types": "dense" or "sparse" for each layer of a model with experts; nothing where there is none.
void read_feed_forward_types(const HfObject& config, ModelSpec& spec);

// RMSNorm, rotary positions, gated feed-forward and their descendants: hf_llama.cc.
void read_llama(const HfObject& config, ModelSpec& spec);
void read_mistral(const HfObject& config, ModelSpec& spec);
void read_phi3(const HfObject& config, ModelSpec& spec);
void read_qwen2(const HfObject& config, ModelSpec& spec);
void read_qwen3(const HfObject& config, ModelSpec& spec);
void read_minimax_text(const HfObject& config, ModelSpec& spec);
void read_olmo2(const HfObject& config, ModelSpec& spec);
void read_olmo3(const HfObject& config, ModelSpec& spec);
void read_cohere(const HfObject& config, ModelSpec& spec);
void read_starcoder2(const HfObject& config, ModelSpec& spec);
void read_gemma(const HfObject& config, ModelSpec& spec);
void read_gemma2(const HfObject& config, ModelSpec& spec);
void read_gemma3(const HfObject& config, ModelSpec& spec);
void read_mixtral(const HfObject& config, ModelSpec& spec);
void read_qwen2_moe(const HfObject& config, ModelSpec& spec);
void read_qwen3_moe(const HfObject& config, ModelSpec& spec);
void read_qwen3_next(const HfObject& config, ModelSpec& spec);
void read_qwen3_5(const HfObject& config, ModelSpec& spec);
void read_qwen3_5_moe(const HfObject& config, ModelSpec& spec);
void read_olmoe(const HfObject& config, ModelSpec& spec);
void read_deepseek_moe(const HfObject& config, ModelSpec& spec);
void read_deepseek_v2(const HfObject& config, ModelSpec& spec);
void read_deepseek_v3(const HfObject& config, ModelSpec& spec);
void read_deepseek_v32(const HfObject& config, ModelSpec& spec);
void read_gpt_oss(const HfObject& config, ModelSpec& spec);
void read_glm4_moe(const HfObject& config, ModelSpec& spec);
void read_minimax_m2(const HfObject& config, ModelSpec& spec);
void read_deepseek_experts(const HfObject& config, ModelSpec& spec, std::int64_t dense_layers, bool selection_bias);
void read_latent(const HfObject& config, ModelSpec& spec);
void read_llama4(const HfObject& config, ModelSpec& spec);

// The types with other switches or other names for their experts: hf_variants.cc.
void read_ministral3(const HfObject& config, ModelSpec& spec);
void read_internlm2(const HfObject& config, ModelSpec& spec);
void read_internlm3(const HfObject& config, ModelSpec& spec);
void read_ernie(const HfObject& config, ModelSpec& spec);
void read_ernie_moe(const HfObject& config, ModelSpec& spec);
void read_hunyuan(const HfObject& config, ModelSpec& spec);
void read_hunyuan_moe(const HfObject& config, ModelSpec& spec);
void read_bailing_moe(const HfObject& config, ModelSpec& spec);
void read_seed_oss(const HfObject& config, ModelSpec& spec);
void read_smollm3(const HfObject& config, ModelSpec& spec);
void read_exaone4(const HfObject& config, ModelSpec& spec);
void read_cohere2(const HfObject& config, ModelSpec& spec);
void read_glm(const HfObject& config, ModelSpec& spec);
void read_glm4(const HfObject& config, ModelSpec& spec);
void read_phimoe(const HfObject& config, ModelSpec& spec);
void read_granite_moe(const HfObject& config, ModelSpec& spec);
void read_dbrx(const HfObject& config, ModelSpec& spec);
void read_arcee(const HfObject& config, ModelSpec& spec);
void read_nemotron(const HfObject& config, ModelSpec& spec);
void read_apertus(const HfObject& config, ModelSpec& spec);
void read_afmoe(const HfObject& config, ModelSpec& spec);
void read_dots1(const HfObject& config, ModelSpec& spec);
void read_exaone_moe(const HfObject& config, ModelSpec& spec);
void read_vaultgemma(const HfObject& config, ModelSpec& spec);
void read_minicpm3(const HfObject& config, ModelSpec& spec);
void read_stablelm(const HfObject& config, ModelSpec& spec);
void read_exaone(const HfObject& config, ModelSpec& spec);
void read_granite_moe_shared(const HfObject& config, ModelSpec& spec);
void read_chatglm(const HfObject& config, ModelSpec& spec);
void read_flex_olmo(const HfObject& config, ModelSpec& spec);

// The types with layers of several kinds: hf_blocks.cc. One block a layer into the model, equal ones joined; where all
// are plain attention before a dense block or experts there is no list.
void set_blocks(ModelSpec& spec, const std::vector<Block>& layers);
void read_nemotron_h(const HfObject& config, ModelSpec& spec);
void read_nemotron_nas(const HfObject& config, ModelSpec& spec);
void read_granite_hybrid(const HfObject& config, ModelSpec& spec);
void read_bamba(const HfObject& config, ModelSpec& spec);
void read_falcon_h1(const HfObject& config, ModelSpec& spec);
void read_mamba2(const HfObject& config, ModelSpec& spec);
void read_mamba(const HfObject& config, ModelSpec& spec);
void read_jamba(const HfObject& config, ModelSpec& spec);
void read_lfm2(const HfObject& config, ModelSpec& spec);
void read_lfm2_moe(const HfObject& config, ModelSpec& spec);
void read_gemma4(const HfObject& config, ModelSpec& spec);
void read_mimo_v2(const HfObject& config, ModelSpec& spec);
void read_kimi_linear(const HfObject& config, ModelSpec& spec);
void read_step3p5(const HfObject& config, ModelSpec& spec);

// Attention to chosen or compressed keys, and layers that are two of others: hf_chosen_keys.cc.
void read_deepseek_v4(const HfObject& config, ModelSpec& spec);
void read_minimax_m3(const HfObject& config, ModelSpec& spec);
void read_longcat_flash(const HfObject& config, ModelSpec& spec);

// A type without a reader, by the keys of Llama's kin, with a note of what was taken; a key that isn't one of these
// is refused (hf_by_keys.cc).
void read_by_keys(const HfObject& config, ModelSpec& spec);

// The rest: hf_classics.cc.
void read_falcon(const HfObject& config, ModelSpec& spec);
void read_phi(const HfObject& config, ModelSpec& spec);
void read_gptj(const HfObject& config, ModelSpec& spec);
void read_gpt_neo(const HfObject& config, ModelSpec& spec);
void read_bloom(const HfObject& config, ModelSpec& spec);
void read_olmo(const HfObject& config, ModelSpec& spec);
void read_gpt_bigcode(const HfObject& config, ModelSpec& spec);
void read_qwen(const HfObject& config, ModelSpec& spec);
void read_modernbert(const HfObject& config, ModelSpec& spec);
void read_gpt2(const HfObject& config, ModelSpec& spec);
void read_opt(const HfObject& config, ModelSpec& spec);
void read_mpt(const HfObject& config, ModelSpec& spec);
void read_gpt_neox(const HfObject& config, ModelSpec& spec);
void read_bert(const HfObject& config, ModelSpec& spec);
void read_roberta(const HfObject& config, ModelSpec& spec);
void read_vit(const HfObject& config, ModelSpec& spec);
void read_t5(const HfObject& config, ModelSpec& spec);
void read_mt5(const HfObject& config, ModelSpec& spec);

}  // namespace spillway::models::hf
