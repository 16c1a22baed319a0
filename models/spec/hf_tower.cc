// Vision towers out of Hugging Face configurations, and those that model files name: parts of published configurations.
#include <array>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "models/spec/hf_object.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

struct NamedTower {
  std::string_view name, config;
};
constexpr std::array<NamedTower, 10> named_towers = {{
    {"gemma3", R"({"model_type": "gemma3", "mm_tokens_per_image": 256, "vision_config": {
       "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
       "num_attention_heads": 16, "image_size": 896, "patch_size": 14}})"},
    {"llava-clip", R"({"model_type": "llava", "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024,
       "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336,
       "patch_size": 14}})"},
    {"mistral3", R"({"model_type": "mistral3", "spatial_merge_size": 2, "vision_config": {"model_type": "pixtral",
       "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
       "patch_size": 14}})"},
    {"kimi-vl", R"({"model_type": "kimi_vl", "vision_config": {"model_type": "moonvit", "hidden_size": 1152,
       "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14}})"},
    {"qwen2-vl", R"({"model_type": "qwen2_vl", "vision_config": {"depth": 32, "embed_dim": 1280, "num_heads": 16}})"},
    {"qwen2.5-vl", R"({"model_type": "qwen2_5_vl", "vision_config": {"depth": 32, "hidden_size": 1280,
       "intermediate_size": 3420, "num_heads": 16}})"},
    {"qwen2.5-vl-3456", R"({"model_type": "qwen2_5_vl", "vision_config": {"depth": 32, "hidden_size": 1280,
       "intermediate_size": 3456, "num_heads": 16}})"},
    {"qwen3-vl", R"({"model_type": "qwen3_vl", "vision_config": {"depth": 27, "hidden_size": 1152,
       "intermediate_size": 4304, "num_heads": 16, "deepstack_visual_indexes": [8, 16, 24]}})"},
    {"qwen3-vl-small", R"({"model_type": "qwen3_vl", "vision_config": {"depth": 24, "hidden_size": 1024,
       "intermediate_size": 4096, "num_heads": 16, "deepstack_visual_indexes": [5, 11, 17]}})"},
    {"qwen3.5", R"({"model_type": "qwen3_5", "vision_config": {"depth": 27, "hidden_size": 1152,
       "intermediate_size": 4304, "num_heads": 16}})"},
}};

void read_sizes(const HfObject& vision, ModelSpec& tower) {
  tower.layers = vision.integer_of({"depth", "num_hidden_layers"}, 0);
  tower.heads = tower.kv_heads = vision.integer_of({"num_heads", "num_attention_heads"}, 16);
  if (tower.hidden <= 0 || tower.layers <= 0 || tower.hidden % tower.heads != 0)
    vision.fail("", "no number of layers, or no width that its heads divide", "correct the configuration");
  tower.head_dim = tower.hidden / tower.heads;
  tower.patches.channels = vision.integer_of({"in_channels", "in_chans", "num_channels"}, 3);
  tower.patches.patch = vision.integer_of({"patch_size", "spatial_patch_size"}, 14);
  tower.patches.class_token = false;
  tower.mask = AttentionMask::bidirectional;
  tower.positions = Positions::rotary;
  tower.max_positions = 1;
  tower.qkv_bias = tower.output_bias = tower.feed_forward_bias = true;
}

// transformers' Qwen2VisionTransformer and its kin: patches of two frames, 2 x 2 of them merged by two products.
void read_qwen(const HfObject& vision, const std::string& type, ModelSpec& tower) {
  Patches& patches = tower.patches;
  const bool is_second = type.starts_with("qwen2_vl"), is_gated = type.starts_with("qwen2_5");
  patches.channels *= vision.integer("temporal_patch_size", 2);
  patches.bias = !is_second && !is_gated;
  if (patches.bias) {
    patches.patch = vision.integer("patch_size", 16);
    patches.table = vision.integer("num_position_embeddings", 2304);
  }
  if (is_second) {
    tower.feed_forward =
        static_cast<std::int64_t>(vision.number("mlp_ratio", 4, 0, 64) * static_cast<double>(tower.hidden));
  } else {
    tower.feed_forward = vision.required("intermediate_size");
  }
  if (is_gated) {
    tower.norm = NormKind::rms_norm;
    tower.activation = Activation::silu_gated;
    const std::int64_t side = vision.integer("window_size", 112) / patches.patch;
    tower.attention_window = side * side;
    const std::vector<std::int64_t> whole = vision.integers("fullatt_block_indexes");
    tower.global_every = whole.empty() ? 8 : whole.front() + 1;
  }
  Projector& projector = tower.projector;
  projector.merge = vision.integer("spatial_merge_size", 2);
  projector.inner = projector.merged() * tower.hidden;
  projector.taps = vision.integers("deepstack_visual_indexes");
}

// Patches of a fixed image, learned positions.
void read_fixed_image(const HfObject& vision, bool class_token, ModelSpec& tower) {
  Patches& patches = tower.patches;
  patches.image = vision.integer("image_size", 224);
  if (patches.image % patches.patch != 0)
    vision.fail("image_size", "no multiple of patch_size", "correct the configuration");
  patches.class_token = class_token;
  patches.bias = !class_token;
  tower.embedding_norm = class_token;  // CLIP's pre_layrnorm
  tower.positions = Positions::learned;
  tower.max_positions = patches.count() + (class_token ? 1 : 0);
  tower.feed_forward = vision.required("intermediate_size");
}

void read_gemma3(const HfObject& whole, const HfObject& vision, ModelSpec& tower) {
  read_fixed_image(vision, false, tower);
  const std::int64_t tokens = whole.integer("mm_tokens_per_image", 256), patches = tower.patches.count();
  Projector& projector = tower.projector;
  while (projector.merged() * tokens < patches) ++projector.merge;
  if (projector.merged() * tokens != patches)
    whole.fail("mm_tokens_per_image", "no square of patches makes a token", "correct the configuration");
  projector.pools = projector.norm = projector.is_rms = true;
  projector.bias = false;
}

void read_pixtral(const HfObject& whole, const HfObject& vision, ModelSpec& tower) {
  tower.feed_forward = vision.required("intermediate_size");
  tower.norm = NormKind::rms_norm;
  tower.activation = Activation::silu_gated;
  tower.qkv_bias = tower.output_bias = tower.feed_forward_bias = tower.patches.bias = false;
  tower.embedding_norm = true;  // ln_pre; the projector's norm is the final one
  Projector& projector = tower.projector;
  projector.merge = whole.integer("spatial_merge_size", 2);
  projector.reduces = true;
  projector.inner = projector.width;
  projector.bias = whole.flag("multimodal_projector_bias", false);
}

void read_moonvit(const HfObject& vision, ModelSpec& tower) {
  tower.feed_forward = vision.required("intermediate_size");
  tower.patches.table = vision.integer("init_pos_emb_height", 64) * vision.integer("init_pos_emb_width", 64);
  Projector& projector = tower.projector;
  projector.merge = 2;
  projector.norm = true;
  projector.inner = projector.merged() * tower.hidden;
}

}  // namespace

std::shared_ptr<const ModelSpec> read_tower(const HfObject& whole, std::int64_t text_width) {
  if (!whole.has("vision_config")) return nullptr;
  const HfObject vision = whole.object("vision_config");
  const std::string type = whole.text("model_type", ""), kind = vision.text("model_type", type);
  auto tower = std::make_shared<ModelSpec>();
  tower->projector.width = text_width;
  const bool is_qwen = type.starts_with("qwen2_vl") || type.starts_with("qwen2_5_vl") || type.starts_with("qwen3_vl") ||
                       type.starts_with("qwen3_5");
  const bool is_llava = type == "llava" && (kind == "clip_vision_model" || kind == "siglip_vision_model");
  if (!is_qwen && !is_llava && type != "gemma3" && !(type == "mistral3" && kind == "pixtral") &&
      !(type == "kimi_vl" && kind == "moonvit"))
    return nullptr;
  tower->hidden = type.starts_with("qwen2_vl") ? vision.integer("embed_dim", 1280) : vision.required("hidden_size");
  tower->name = tower->title = type + "'s vision tower";
  read_sizes(vision, *tower);
  if (is_qwen) read_qwen(vision, type, *tower);
  if (type == "gemma3") read_gemma3(whole, vision, *tower);
  if (type == "mistral3") read_pixtral(whole, vision, *tower);
  if (type == "kimi_vl") read_moonvit(vision, *tower);
  if (is_llava) {
    read_fixed_image(vision, kind == "clip_vision_model", *tower);
    tower->projector.inner = text_width;
    tower->projector.bias = whole.flag("multimodal_projector_bias", true);
  }
  return tower;
}

const Words& tower_words() {
  static const Words words = [] {
    std::vector<Word> list;
    for (const NamedTower& each : named_towers) list.push_back({.name = each.name});
    return Words(std::move(list));
  }();
  return words;
}

void settle_tower(ModelSpec& spec) {
  for (const NamedTower& each : named_towers) {
    if (spec.tower_name != each.name) continue;
    const nlohmann::json config = nlohmann::json::parse(each.config);
    set_tower(spec, read_tower(HfObject(config, spec.name), spec.hidden));
  }
}

}  // namespace spillway::models
