// Models whose layers are of several kinds: state space layers, short convolutions, heads that differ from layer to
// layer.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "models/spec/hf_readers.h"

namespace spillway::models::hf {

namespace {

bool is_same(Block a, const Block& b) {
  a.count = b.count;
  return a == b;
}

// "auto", or missing: the rest of the width.
std::int64_t mamba_head_dim(const HfObject& config, const Mamba& mamba, std::int64_t width) {
  const bool is_said = config.has("mamba_d_head") && !config.is_text("mamba_d_head");
  return is_said ? config.required("mamba_d_head") : width / std::max<std::int64_t>(1, mamba.heads);
}

// Keys of Bamba, Granite and Falcon-H1.
Mamba mamba_of(const HfObject& config, std::int64_t width) {
  Mamba mamba{.heads = config.integer("mamba_n_heads", 128),
              .state = config.integer("mamba_d_state", 256),
              .groups = config.integer("mamba_n_groups", 1),
              .convolution = config.integer("mamba_d_conv", 4),
              .chunk = config.integer("mamba_chunk_size", 256),
              .convolution_bias = config.flag("mamba_conv_bias", true),
              .bias = config.flag("mamba_proj_bias", false)};
  mamba.head_dim = mamba_head_dim(config, mamba, width);
  if (mamba.head_dim * mamba.heads != width)
    config.fail("mamba_n_heads",
                fmt::format("{} heads of {} don't make a width of {}", mamba.heads, mamba.head_dim, width),
                "correct it");
  return mamba;
}

std::int64_t expanded(const HfObject& config, const ModelSpec& spec) {
  return config.integer("mamba_expand", 2) * spec.hidden;
}

// Names that layers of a kind have had in transformers.
std::optional<Mixer> mixer_named(const std::string& word) {
  if (word == "mamba" || word == "mamba2" || word == "linear_attention") return Mixer::mamba;
  if (word == "attention" || word == "full_attention") return Mixer::attention;
  return std::nullopt;
}

std::vector<Block> mamba_layers(const HfObject& config, const ModelSpec& spec, const char* key, Block usual) {
  std::vector<Block> layers(static_cast<std::size_t>(spec.layers), usual);
  const std::vector<std::string> words = config.texts(key);
  if (static_cast<std::int64_t>(words.size()) != spec.layers) config.fail(key, "not one for each layer", "correct it");
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto mixer = mixer_named(words[i]);
    if (!mixer) config.unsupported(key, fmt::format("\"{}\"", words[i]));
    layers[i].mixer = *mixer;
  }
  return layers;
}

}  // namespace

void set_blocks(ModelSpec& spec, const std::vector<Block>& layers) {
  spec.blocks.clear();
  for (const Block& each : layers) {
    if (!spec.blocks.empty() && is_same(spec.blocks.back(), each))
      ++spec.blocks.back().count;
    else
      spec.blocks.push_back(each);
  }
  if (spec.blocks.size() == 1) spec.blocks.front().count = 1;
  const bool is_plain =
      spec.blocks.size() == 1 &&
      (is_same(spec.blocks.front(), Block{}) ||
       (spec.has_experts() && is_same(spec.blocks.front(), Block{.feed_forward = FeedForward::experts})));
  if (is_plain) spec.blocks.clear();
}

void list_dense_layers(ModelSpec& spec, const std::vector<std::int64_t>& dense) {
  std::vector<Block> layers;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    Block block;
    const Block is = spec.block(layer);
    block.mixer = is.mixer, block.window = is.window, block.sinks = is.sinks, block.feed_forward = is.feed_forward;
    if (std::find(dense.begin(), dense.end(), layer) != dense.end()) block.feed_forward = FeedForward::dense;
    layers.push_back(block);
  }
  spec.attention_window = spec.global_every = spec.linear.full_every = spec.experts.first_dense_layers = 0;
  spec.experts.every = 1;
  set_blocks(spec, layers);
}

void read_feed_forward_types(const HfObject& config, ModelSpec& spec) {
  const std::vector<std::string> words = config.texts("mlp_layer_types");
  if (words.empty()) return;
  if (static_cast<std::int64_t>(words.size()) != spec.layers)
    config.fail("mlp_layer_types", "not one for each layer", "correct it");
  std::vector<std::int64_t> dense;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != "dense" && words[i] != "sparse" && words[i] != "moe")
      config.unsupported("mlp_layer_types", fmt::format("\"{}\"", words[i]));
    if (words[i] == "dense") dense.push_back(static_cast<std::int64_t>(i));
  }
  std::int64_t first = 0;
  while (first < static_cast<std::int64_t>(dense.size()) && dense[static_cast<std::size_t>(first)] == first) ++first;
  spec.experts.first_dense_layers = first;
  spec.experts.every = 1;
  if (first < static_cast<std::int64_t>(dense.size())) list_dense_layers(spec, dense);
}

namespace {

// "MEM*-", or a word for each layer.
std::vector<Block> nemotron_layers(const HfObject& config) {
  const std::string pattern = config.text("hybrid_override_pattern", "");
  const char* key = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<std::string> words = config.texts(key);
  if (words.empty())
    for (const char letter : pattern) words.emplace_back(1, letter);
  if (words.empty())
    config.fail("hybrid_override_pattern", "missing: what the layers are made of isn't assumed",
                "add it, or layers_block_type, as the model's published config.json has it");
  std::vector<Block> layers;
  for (const std::string& word : words) {
    Block block;
    const auto mixer = mixer_named(word);
    if (mixer || word == "M" || word == "*") {
      block.mixer = mixer ? *mixer : word == "M" ? Mixer::mamba : Mixer::attention;
      block.feed_forward = FeedForward::none;
    } else if (word == "mlp" || word == "-" || word == "moe" || word == "E") {
      block.mixer = Mixer::none;
      block.feed_forward = word == "mlp" || word == "-" ? FeedForward::dense : FeedForward::experts;
    } else {
      config.unsupported(pattern.empty() ? key : "hybrid_override_pattern", fmt::format("\"{}\"", word));
    }
    layers.push_back(block);
  }
  return layers;
}

bool any_of(const std::vector<Block>& layers, bool (*is)(const Block&)) {
  return std::any_of(layers.begin(), layers.end(), is);
}

}  // namespace

void read_nemotron_h(const HfObject& config, ModelSpec& spec) {
  const std::vector<Block> layers = nemotron_layers(config);
  const std::int64_t head_dim = config.integer_of({"head_dim", "attention_head_dim"}, 128);
  const bool every_head = config.mentions("num_key_value_heads") && !config.has("num_key_value_heads");
  spec.layers = static_cast<std::int64_t>(layers.size());
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.heads = config.required("num_attention_heads");
  spec.kv_heads = every_head ? spec.heads : config.integer("num_key_value_heads", 8);
  spec.head_dim = head_dim;
  const bool has_dense = any_of(layers, [](const Block& b) { return b.feed_forward == FeedForward::dense; });
  spec.feed_forward =
      has_dense ? config.required("intermediate_size") : config.integer("intermediate_size", spec.hidden);
  spec.max_positions = config.integer("max_position_embeddings", 4096);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::none;
  if (config.text("mlp_hidden_act", "relu2") != "relu2") config.unsupported("mlp_hidden_act", "another activation");
  spec.activation = Activation::relu_squared;
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  if (any_of(layers, [](const Block& b) { return b.mixer == Mixer::mamba; }))
    spec.mamba = {.heads = config.required("mamba_num_heads"),
                  .head_dim = config.required("mamba_head_dim"),
                  .state = config.required("ssm_state_size"),
                  .groups = config.integer_of({"n_groups", "mamba_n_groups"}, 8),
                  .convolution = config.integer_of({"conv_kernel", "mamba_d_conv"}, 4),
                  .chunk = config.integer_of({"chunk_size", "mamba_chunk_size"}, 128),
                  .convolution_bias = config.flag("use_conv_bias", config.flag("mamba_conv_bias", true)),
                  .bias = config.flag("mamba_proj_bias", config.flag("use_bias", false))};
  if (any_of(layers, [](const Block& b) { return b.has_experts(); })) {
    const std::int64_t width = config.required("moe_intermediate_size"),
                       shared = config.integer("moe_shared_expert_intermediate_size", width);
    spec.experts = {.count = config.required("n_routed_experts"),
                    .active = config.required("num_experts_per_tok"),
                    .width = width,
                    .shared_width = config.integer("n_shared_experts", 1, 0) * shared,
                    .selection_bias = true,
                    .latent_width = config.integer("moe_latent_size", 0, 0)};
    const std::int64_t groups = config.integer("n_group", 1);
    if (groups > 1) spec.experts.groups = groups, spec.experts.chosen_groups = config.integer("topk_group", 1);
  }
  set_blocks(spec, layers);
}

// Llama with layers cut down by a search: fewer key heads, narrower feed-forward blocks, parts left out.
void read_nemotron_nas(const HfObject& config, ModelSpec& spec) {
  spec.hidden = config.required("hidden_size");
  spec.vocabulary = config.required("vocab_size");
  spec.layers = config.required("num_hidden_layers");
  spec.heads = spec.kv_heads = config.required("num_attention_heads");
  spec.head_dim = spec.hidden / spec.heads;
  spec.max_positions = config.integer("max_position_embeddings", 131'072);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.activation = gated_activation(config, "hidden_act", "silu");
  set_attention_bias(config, spec);
  std::vector<Block> layers;
  for (const HfObject& each : config.objects("block_configs")) {
    const HfObject attention = each.object("attention"), block = each.object("ffn");
    for (const HfObject* part : {&attention, &block})
      if (part->flag("replace_with_linear", false))
        part->unsupported("replace_with_linear", "a linear layer in its place");
    Block layer;
    if (attention.flag("no_op", false))
      layer.mixer = Mixer::none;
    else
      layer.kv_heads = spec.heads / std::max<std::int64_t>(1, attention.required("n_heads_in_group"));
    if (block.flag("no_op", false)) {
      layer.feed_forward = FeedForward::none;
    } else {
      constexpr std::int64_t multiple = 256;
      const auto wide =
          static_cast<std::int64_t>(2 * block.number("ffn_mult", 0, 0, 1024) * static_cast<double>(spec.hidden) / 3);
      layer.width = (wide + multiple - 1) / multiple * multiple;
      if (layer.width == 0) block.fail("ffn_mult", "missing: no size is assumed", "add it, as published");
      spec.feed_forward = std::max(spec.feed_forward, layer.width);
    }
    if (layer.mixer == Mixer::none && layer.feed_forward == FeedForward::none) {
      --spec.layers;  // nothing is left of it
      continue;
    }
    layers.push_back(layer);
  }
  if (static_cast<std::int64_t>(layers.size()) != spec.layers)
    config.fail("block_configs", "not one for each layer", "correct it");
  for (const Block& layer : layers) spec.kv_heads = layer.kv_heads > 0 ? layer.kv_heads : spec.kv_heads;
  set_blocks(spec, layers);
}

void read_granite_hybrid(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 2048, false});
  set_attention_bias(config, spec);
  const std::int64_t shared = config.integer("shared_intermediate_size", 1024),
                     count = config.integer("num_local_experts", 8, 0);
  Block usual;
  if (count > 0) {
    spec.experts = {.count = count,
                    .active = config.required("num_experts_per_tok"),
                    .width = spec.feed_forward,
                    .shared_width = shared};
    usual.feed_forward = FeedForward::experts;
  } else {
    spec.feed_forward = shared;
  }
  if (config.text("position_embedding_type", "") != "rope") spec.positions = Positions::none;
  const char* key = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  usual.mixer = Mixer::mamba;
  std::vector<Block> layers(static_cast<std::size_t>(spec.layers), usual);
  if (config.size(key) > 0) layers = mamba_layers(config, spec, key, usual);
  if (any_of(layers, [](const Block& b) { return b.mixer == Mixer::mamba; }))
    spec.mamba = mamba_of(config, expanded(config, spec));
  set_blocks(spec, layers);
}

void read_bamba(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 262'144, false});
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  std::vector<Block> layers(static_cast<std::size_t>(spec.layers), Block{.mixer = Mixer::mamba});
  if (config.size("layer_types") > 0) layers = mamba_layers(config, spec, "layer_types", {});
  for (const std::int64_t at : config.integers("attn_layer_indices"))
    if (at < spec.layers) layers[static_cast<std::size_t>(at)].mixer = Mixer::attention;
  spec.mamba = mamba_of(config, expanded(config, spec));
  set_blocks(spec, layers);
}

void read_falcon_h1(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 8192, false});
  set_attention_bias(config, spec);
  spec.feed_forward_bias = config.flag("mlp_bias", false);
  const bool follows = config.mentions("mamba_d_ssm") && !config.has("mamba_d_ssm");
  spec.mamba = mamba_of(config, follows ? expanded(config, spec) : config.integer("mamba_d_ssm", 1024));
  spec.mamba.norm = config.flag("mamba_rms_norm", false);
  spec.blocks = {{.mixer = Mixer::beside}};
}

namespace {

// A bottleneck that isn't given ("auto") is a sixteenth of the width, rounded up.
Mamba first_mamba(const HfObject& config, const ModelSpec& spec, std::int64_t width, const char* rank,
                  const char* state, const char* convolution) {
  const bool is_auto = !config.has(rank) || config.is_text(rank);
  return {.heads = 1,
          .head_dim = width,
          .state = config.integer(state, 16),
          .convolution = config.integer(convolution, 4),
          .norm = false,
          .step_rank = is_auto ? (spec.hidden + 15) / 16 : config.integer(rank, 1)};
}

}  // namespace

// Every so many layers attend, and every so many have experts.
void read_jamba(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 262'144, false});
  spec.positions = Positions::none;
  spec.mamba = first_mamba(config, spec, config.integer("mamba_expand", 2) * spec.hidden, "mamba_dt_rank",
                           "mamba_d_state", "mamba_d_conv");
  spec.mamba.convolution_bias = config.flag("mamba_conv_bias", true);
  spec.mamba.bias = config.flag("mamba_proj_bias", false);
  spec.mamba.inner_norms = true;
  spec.experts = {.count = config.integer("num_experts", 16),
                  .active = config.integer("num_experts_per_tok", 2),
                  .width = spec.feed_forward};
  const bool has_experts = spec.experts.count > 1;
  if (!has_experts) spec.experts = {};
  const auto at = [&config](std::int64_t layer, const char* period, std::int64_t every, const char* offset,
                            std::int64_t first) {
    const std::int64_t length = config.integer(period, every);
    return layer % length == config.integer(offset, first, 0) % length;
  };
  std::vector<Block> layers;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const bool attends = at(layer, "attn_layer_period", 8, "attn_layer_offset", 4);
    const bool chooses = has_experts && at(layer, "expert_layer_period", 2, "expert_layer_offset", 1);
    layers.push_back({.mixer = attends ? Mixer::attention : Mixer::mamba,
                      .feed_forward = chooses ? FeedForward::experts : FeedForward::dense});
  }
  set_blocks(spec, layers);
}

// The first Mamba alone; Falcon's has norms without weights beside.
void read_mamba(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  const std::int64_t width = config.integer("intermediate_size", config.integer("expand", 2) * spec.hidden);
  spec.mamba = first_mamba(config, spec, width, "time_step_rank", "state_size", "conv_kernel");
  spec.mamba.convolution_bias = config.flag("use_conv_bias", true);
  spec.mamba.bias = config.flag("use_bias", false);
  spec.heads = spec.kv_heads = 1;
  spec.head_dim = spec.feed_forward = width;
  constexpr std::int64_t long_enough = 1 << 20;  // there is no longest sequence
  spec.max_positions = long_enough;
  spec.tied_embeddings = config.flag("tie_word_embeddings", true);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::none;
  spec.activation = Activation::silu_gated;
  spec.blocks = {{.mixer = Mixer::mamba, .feed_forward = FeedForward::none}};
}

// Mixers alone. What attention there isn't has no sizes; the mixer's stand for them.
void read_mamba2(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = config.required("num_hidden_layers");
  spec.mamba = {.heads = config.required("num_heads"),
                .head_dim = config.required("head_dim"),
                .state = config.integer("state_size", 128),
                .groups = config.integer("n_groups", 8),
                .convolution = config.integer("conv_kernel", 4),
                .chunk = config.integer("chunk_size", 256),
                .convolution_bias = config.flag("use_conv_bias", true),
                .bias = config.flag("use_bias", false)};
  spec.heads = spec.kv_heads = spec.mamba.heads;
  spec.head_dim = spec.mamba.head_dim;
  spec.feed_forward = spec.mamba.width();
  constexpr std::int64_t long_enough = 1 << 20;  // there is no longest sequence
  spec.max_positions = long_enough;
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::none;
  spec.activation = Activation::silu_gated;
  spec.blocks = {{.mixer = Mixer::mamba, .feed_forward = FeedForward::none}};
}

namespace {

std::vector<Block> lfm2_layers(const HfObject& config, const ModelSpec& spec) {
  std::vector<Block> layers(static_cast<std::size_t>(spec.layers), Block{.mixer = Mixer::convolution});
  const std::vector<std::string> words = config.texts("layer_types");
  if (!words.empty() && words.size() != layers.size())
    config.fail("layer_types", "not one for each layer", "correct it");
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "full_attention")
      layers[i].mixer = Mixer::attention;
    else if (words[i] != "conv" && words[i] != "short_conv")
      config.unsupported("layer_types", fmt::format("\"{}\"", words[i]));
  }
  if (words.empty() && !config.has("full_attn_idxs"))
    for (Block& layer : layers) layer.mixer = Mixer::attention;
  if (words.empty())
    for (const std::int64_t at : config.integers("full_attn_idxs"))
      if (at < spec.layers) layers[static_cast<std::size_t>(at)].mixer = Mixer::attention;
  return layers;
}

void read_lfm2_shape(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 0, 128'000, true});
  spec.tied_embeddings = config.flag("tie_embedding", spec.tied_embeddings);
  spec.query_key_norm = true;
  spec.convolution = {.tokens = config.integer("conv_L_cache", 3), .bias = config.flag("conv_bias", false)};
}

void set_lfm2_blocks(ModelSpec& spec, const std::vector<Block>& layers) {
  if (!any_of(layers, [](const Block& b) { return b.mixer == Mixer::convolution; })) spec.convolution = {};
  set_blocks(spec, layers);
}

}  // namespace

// The feed-forward width is two thirds of what is written, rounded up, unless it is said to be final.
void read_lfm2(const HfObject& config, ModelSpec& spec) {
  read_lfm2_shape(config, spec);
  if (config.has("block_ff_dim")) spec.feed_forward = config.required("block_ff_dim");
  if (config.flag("block_auto_adjust_ff_dim", true)) {
    const std::int64_t multiple = config.integer("block_multiple_of", 256);
    const std::int64_t two_thirds = 2 * spec.feed_forward / 3;
    const double wide =
        std::floor(static_cast<double>(two_thirds) * config.number("block_ffn_dim_multiplier", 1, 0, 1024));
    spec.feed_forward = (static_cast<std::int64_t>(wide) + multiple - 1) / multiple * multiple;
  }
  set_lfm2_blocks(spec, lfm2_layers(config, spec));
}

void read_lfm2_moe(const HfObject& config, ModelSpec& spec) {
  read_lfm2_shape(config, spec);
  spec.experts = {.count = config.required("num_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = config.required("moe_intermediate_size"),
                  .selection_bias = config.flag("use_expert_bias", true)};
  std::vector<Block> layers = lfm2_layers(config, spec);
  const std::int64_t dense = config.integer("num_dense_layers", 2, 0);
  for (std::int64_t layer = dense; layer < spec.layers; ++layer)
    layers[static_cast<std::size_t>(layer)].feed_forward = FeedForward::experts;
  set_lfm2_blocks(spec, layers);
}

// Local layers, and full ones whose heads are wider and share fewer keys. The norm of values has no weights, and is
// left out.
void read_gemma4(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {4, 256, 131'072, true});
  set_attention_bias(config, spec);
  spec.activation = gated_activation(config, "hidden_activation", "gelu_pytorch_tanh");
  spec.norm_placement = NormPlacement::sandwich;
  spec.query_key_norm = true;
  spec.logit_softcap = config.number("final_logit_softcapping", 0, 0, 1e6);
  const bool no_inputs = config.mentions("hidden_size_per_layer_input") && !config.has("hidden_size_per_layer_input");
  spec.layer_inputs.width = no_inputs ? 0 : config.integer("hidden_size_per_layer_input", 256, 0);
  if (spec.layer_inputs.width > 0) spec.layer_inputs.vocabulary = config.integer("vocab_size_per_layer_input", 262'144);
  const std::int64_t sharing = config.integer("num_kv_shared_layers", 0, 0), first_sharing = spec.layers - sharing;
  if (sharing > 0 && first_sharing < 1) config.fail("num_kv_shared_layers", "no layer has its own keys", "correct it");
  const bool is_doubled = sharing > 0 && config.flag("use_double_wide_mlp", false);
  const bool has_experts = config.flag("enable_moe_block", false), joins = config.flag("attention_k_eq_v", false);
  if (has_experts)
    spec.experts = {.count = config.required("num_experts"),
                    .active = config.integer_of({"top_k_experts", "num_experts_per_tok"}, 0),
                    .width = config.required("moe_intermediate_size")};
  if (has_experts && spec.experts.active == 0) config.fail("top_k_experts", "missing: no number is assumed", "add it");
  const std::vector<std::string> words = config.texts("layer_types");
  if (!words.empty() && static_cast<std::int64_t>(words.size()) != spec.layers)
    config.fail("layer_types", "not one for each layer", "correct it");
  Block local{.window = config.integer("sliding_window", 512, 0)};
  Block full{.kv_heads = joins ? config.integer("num_global_key_value_heads", spec.kv_heads) : 0,
             .head_dim = config.integer("global_head_dim", 512),
             .keys_as_values = joins};
  if (full.head_dim == spec.head_dim) full.head_dim = 0;
  if (full.kv_heads == spec.kv_heads) full.kv_heads = 0;
  if (has_experts) local.feed_forward = full.feed_forward = FeedForward::both;
  std::vector<Block> layers;
  constexpr std::int64_t every = 6;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const bool is_full =
        words.empty() ? (layer + 1) % every == 0 : words[static_cast<std::size_t>(layer)] == "full_attention";
    layers.push_back(is_full || layer + 1 == spec.layers ? full : local);
    if (layer < first_sharing) continue;
    layers.back().shares_keys = true;
    if (is_doubled) layers.back().width = 2 * spec.feed_forward;
  }
  set_blocks(spec, layers);
}

// Windows with more key heads, and with sinks; experts in the layers that moe_layer_freq lists.
void read_mimo_v2(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 32'768, false});
  set_attention_bias(config, spec);
  spec.output_bias = false;
  const std::vector<std::int64_t> windows = config.integers("hybrid_layer_pattern"),
                                  sparse = config.integers("moe_layer_freq");
  for (const auto& [key, list] : {std::pair("hybrid_layer_pattern", &windows), std::pair("moe_layer_freq", &sparse)})
    if (static_cast<std::int64_t>(list->size()) != spec.layers)
      config.fail(key, "not one for each layer", "correct it");
  const std::int64_t width = config.required("moe_intermediate_size");
  spec.experts = {.count = config.required("n_routed_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer("n_shared_experts", 0, 0) * width,
                  .selection_bias = config.text("topk_method", "noaux_tc") == "noaux_tc"};
  const Block full{.value_dim = config.integer("v_head_dim", spec.head_dim),
                   .sinks = config.flag("add_full_attention_sink_bias", false)};
  const std::int64_t wide = config.integer("swa_head_dim", spec.head_dim);
  const Block local{.window = config.integer_of({"sliding_window_size", "sliding_window"}, 128),
                    .heads = config.integer("swa_num_attention_heads", spec.heads),
                    .kv_heads = config.integer("swa_num_key_value_heads", spec.kv_heads),
                    .head_dim = wide,
                    .value_dim = config.integer("swa_v_head_dim", config.integer("v_head_dim", wide)),
                    .sinks = config.flag("add_swa_attention_sink_bias", true)};
  std::vector<Block> layers;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    layers.push_back(windows[i] != 0 ? local : full);
    layers.back().feed_forward = sparse[i] != 0 ? FeedForward::experts : FeedForward::dense;
  }
  set_blocks(spec, layers);
}

// Layers, counted from one, of a delta rule with a gate for each channel, and of latent attention, whose rotary part is
// there without positions. Of K3, experts in a latent width and residuals from earlier groups of layers.
void read_kimi_linear(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 0, 1 << 20, false});
  spec.max_positions = config.integer_of({"model_max_length", "max_position_embeddings"}, spec.max_positions);
  read_latent(config, spec);
  const HfObject linear = config.object("linear_attn_config");
  const std::int64_t heads = linear.required("num_heads"), wide = linear.required("head_dim");
  spec.linear = {.key_heads = heads,
                 .value_heads = heads,
                 .key_dim = wide,
                 .value_dim = wide,
                 .convolution = linear.integer("short_conv_kernel_size", 4),
                 .gate_rank = wide,
                 .whole_gate = linear.flag("use_full_rank_gate", false)};
  spec.attention_gate = config.flag("mla_use_output_gate", false);
  spec.residual_group = config.integer("attn_res_block_size", 0);
  const std::int64_t dense = config.integer("first_k_dense_replace", 0, 0), every = config.integer("moe_layer_freq", 1);
  const bool has_experts = config.has("num_experts");
  if (has_experts) {
    const std::int64_t width = config.required("moe_intermediate_size");
    spec.experts = {.count = config.required("num_experts"),
                    .active = config.integer_of({"num_experts_per_token", "num_experts_per_tok"}, 0),
                    .width = width,
                    .shared_width = config.integer("num_shared_experts", 0, 0) * width,
                    .selection_bias = true,
                    .latent_width = config.integer("routed_expert_hidden_size", 0)};
    spec.experts.latent_norm = spec.experts.latent_width > 0 && config.flag("latent_moe_use_norm", false);
    if (spec.experts.active == 0) config.fail("num_experts_per_token", "missing: no number is assumed", "add it");
    const std::int64_t groups = config.integer_of({"num_expert_group", "n_group"}, 1);
    if (groups > 1) spec.experts.groups = groups, spec.experts.chosen_groups = config.integer("topk_group", 1);
  }
  const std::vector<std::int64_t> delta = linear.integers("kda_layers");
  if (delta.empty()) linear.fail("kda_layers", "missing: which layers have it isn't assumed", "add it, as published");
  std::vector<Block> layers;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    Block block;
    if (std::find(delta.begin(), delta.end(), layer + 1) != delta.end()) block.mixer = Mixer::delta_rule;
    if (has_experts && layer >= dense && layer % every == 0) block.feed_forward = FeedForward::experts;
    layers.push_back(block);
  }
  set_blocks(spec, layers);
}

namespace {

// "3,4,5": the layers with experts.
std::vector<std::int64_t> numbers_in(const HfObject& config, const char* key) {
  std::vector<std::int64_t> numbers;
  std::int64_t number = -1;
  if (!config.is_text(key)) return config.integers(key);
  for (const char letter : config.text(key, "") + ",") {
    if (letter >= '0' && letter <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (letter - '0');
      if (number > 4096) config.fail(key, "a layer behind the 4096th", "correct it");
    } else if (letter == ',' || letter == ' ') {
      if (number >= 0) numbers.push_back(number);
      number = -1;
    } else {
      config.fail(key, "not a list of numbers", "separate them by commas");
    }
  }
  return numbers;
}

}  // namespace

// Windows with more query heads; a gate for each head.
void read_step3p5(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {0, 128, 131'072, false});
  spec.kv_heads = config.integer_of({"num_attention_groups", "num_key_value_heads"}, spec.heads);
  spec.query_key_norm = true;
  spec.head_gate = config.flag("use_head_wise_attn_gate", false);
  const auto either = [&config](std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (config.has(key)) return config.required(key);
    return config.required(*keys.begin());
  };
  spec.experts = {.count = either({"moe_num_experts", "n_routed_experts", "num_experts"}),
                  .active = either({"moe_top_k", "num_experts_per_tok"}),
                  .width = config.required("moe_intermediate_size"),
                  .shared_width = config.integer_of({"share_expert_dim", "share_expert_dims"}, 0),
                  .selection_bias = config.flag("use_moe_router_bias", false)};
  const HfObject other = config.object("attention_other_setting");
  const Block local{
      .window = config.integer("sliding_window", 512, 0),
      .heads = other.integer("num_attention_heads", config.integer("num_sliding_attention_heads", spec.heads)),
      .kv_heads = other.integer("num_attention_groups", spec.kv_heads),
      .head_dim = other.integer("head_dim", spec.head_dim)};
  const std::vector<std::string> words = config.texts("layer_types");  // of the layers of multi-token prediction, too
  const std::vector<std::int64_t> sparse = numbers_in(config, "moe_layers_enum");
  if (!words.empty() && static_cast<std::int64_t>(words.size()) < spec.layers)
    config.fail("layer_types", "not one for each layer", "correct it");
  const std::vector<std::string> kinds = config.texts("mlp_layer_types");
  const std::int64_t first_sparse = config.integer("first_k_dense_replace", 3, 0);
  std::vector<Block> layers;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const bool is_local = !words.empty() && words[at] == "sliding_attention";
    const bool is_sparse = at < kinds.size() ? kinds[at] == "sparse"
                           : sparse.empty()  ? layer >= first_sparse
                                             : std::find(sparse.begin(), sparse.end(), layer) != sparse.end();
    layers.push_back(is_local ? local : Block{});
    layers.back().feed_forward = is_sparse ? FeedForward::experts : FeedForward::dense;
  }
  set_blocks(spec, layers);
}

}  // namespace spillway::models::hf
