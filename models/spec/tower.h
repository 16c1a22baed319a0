// The vision tower of a model of several parts: a ViT with a projector into the text (ModelSpec::tower), and how it
// runs beside the text when sequences have images.
//
//   patches of an image -> layers, both ways attending -> merged, projected: tokens of the text
//
// The tokens take the place of as many of the text's: a sequence does not grow. The tower comes before the text's first
// layer, on the first pipeline stage. Every tensor and context rank runs it whole (Megatron-core's LLaVAModel splits
// towers over tensor ranks only where both configurations say so; transformers' plans leave towers whole). Its weights,
// gradients and states are shared out by ZeRO as others are, a layer a unit. With recompute full its layers are
// recomputed too (transformers' gradient_checkpointing_enable turns it on in all parts).
//
// Patches of an image attend to all others of it, in layers with windows to those of the window (Qwen2.5-VL). Sizes and
// orders are of transformers' modeling_qwen2_5_vl.py, modeling_qwen3_vl.py, modeling_gemma3.py, modeling_mistral3.py,
// modeling_llava.py, and of Kimi-VL's modeling_kimi_vl.py. Deviations: queries, keys and values are three products
// everywhere; LLaVA drops the last layer's result, which is computed all the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/words.h"
#include "models/spec/hf_object.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// Reads the vision_config of a whole configuration; null where its kind is not known.
std::shared_ptr<const ModelSpec> read_tower(const HfObject& whole, std::int64_t text_width);
// The kinds that model files and published ids name.
const Words& tower_words();
// Sets tower and held_parameters from tower_name, where there is one.
void settle_tower(ModelSpec& spec);
void set_tower(ModelSpec& spec, std::shared_ptr<const ModelSpec> tower);

// All below: of resolved set-ups. Rows of one image in the tower's layers, the class token's among them.
std::int64_t image_rows(const ModelSpec& tower, const TrainingSetup& setup);
// How the tower runs: its sequences are images. Precondition: setup.images > 0.
TrainingSetup tower_setup(const TrainingSetup& setup, const ModelSpec& model);
// Whether gradients go through the text to the tower or its projector.
bool trains_tower(const TrainingSetup& setup);
// Operations of the tower for one sequence of the text, forward and backward, as product_flops_per_token() counts, with
// those of attention. 0 without images.
double tower_flops(const ModelSpec& model, const TrainingSetup& setup);
// The part of resolve(): image_tokens follow from the tower where they can.
void check_tower(TrainingSetup& setup, const ModelSpec& model);

}  // namespace spillway::models
