// Hugging Face config.json to ModelSpec: one reader per "model_type".
//
// Supported: bert, cohere, deepseek, deepseek_v2, deepseek_v3 (and kimi_k2), gemma, gemma2, gemma3_text, gpt2,
// gpt_neox, granite, llama, mistral, mixtral, mpt, mt5, olmo2, olmo3, olmoe, opt, phi3, qwen2, qwen2_moe, qwen3,
// qwen3_moe, roberta, starcoder2, t5, vit. Sizes (layers, widths, heads, vocabulary, experts, ranks) must be there; any
// other missing key has the default that the transformers library (4.5x) documents for that configuration class. Keys
// that don't change shapes (rope_theta, quantization_config, ...) are ignored; those that change the model in a way
// spillway does not know are refused.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/spec/model_spec.h"

namespace spillway::models {

// An object with "model_type" or "architectures" and without "schema".
bool is_hf_config(const nlohmann::ordered_json& json);

// Throws InputError for architectures and settings that are not modelled, missing sizes, and values out of range. The
// name is the file's, or its folder's when the file is called config.json.
ModelSpec read_hf_config(const nlohmann::json& json, const std::string& file);

}  // namespace spillway::models
