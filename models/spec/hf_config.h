// Hugging Face config.json to ModelSpec: one reader per "model_type", the table of hf_config.cc.
//
// Sizes (layers, widths, heads, vocabulary, experts, ranks) must be there; any other missing key has the default that
// the transformers library (4.5x) documents for that configuration class. If a configuration has several
// parts (text_config beside vision_config), the text model is read, there with the class's sizes too; the tower's
// parameters are held_parameters. Keys that don't change shapes (rope_theta, quantization_config, ...) are ignored;
// those that change the model in a way spillway does not know are refused.
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
