// Models whose attention sees keys that an indexer chooses or that stand for several tokens (DeepSeek-V4, MiniMax-M3),
// and LongCat-Flash, whose layers are two of others.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "models/spec/hf_readers.h"

namespace spillway::models::hf {

namespace {

// Tokens that each layer's compressed keys stand for: "compress_ratios", which counts layers of multi-token prediction
// too, or the names of transformers' "layer_types" with "compress_rates".
std::vector<std::int64_t> compressions(const HfObject& config, const ModelSpec& spec) {
  std::vector<std::int64_t> all = config.integers("compress_ratios");
  const HfObject rates = config.object("compress_rates");
  const std::vector<std::string> kinds = all.empty() ? config.texts("layer_types") : std::vector<std::string>{};
  for (const std::string& kind : kinds) {
    const bool chooses = kind == "compressed_sparse_attention", is_heavy = kind == "heavily_compressed_attention";
    if (!chooses && !is_heavy && kind != "sliding_attention")
      config.unsupported("layer_types", fmt::format("\"{}\"", kind));
    all.push_back(chooses || is_heavy ? rates.integer(kind.c_str(), chooses ? 4 : 128) : 0);
  }
  if (static_cast<std::int64_t>(all.size()) < spec.layers)
    config.fail("compress_ratios", "not one for each layer", "add it, as the model's published config.json has it");
  all.resize(static_cast<std::size_t>(spec.layers));
  return all;
}

}  // namespace

// The first layers choose experts by the token alone, which is as much work.
void read_deepseek_v4(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {1, 512, 1 << 20, false, "moe_intermediate_size"});
  const std::int64_t width = spec.feed_forward;
  spec.compressed = {.query_rank = config.required("q_lora_rank"),
                     .rope_dim = config.integer("qk_rope_head_dim", 64),
                     .output_groups = config.required("o_groups"),
                     .output_rank = config.required("o_lora_rank")};
  spec.streams = config.integer("hc_mult", 4);
  spec.experts = {.count = config.required("n_routed_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = width,
                  .shared_width = config.integer("n_shared_experts", 1, 0) * width,
                  .selection_bias = config.text("topk_method", "noaux_tc") == "noaux_tc"};
  constexpr std::int64_t choosing = 4;  // longer ones are few enough to see them all
  std::vector<Block> layers;
  bool any_chooses = false;
  for (const std::int64_t compression : compressions(config, spec)) {
    const bool chooses = compression > 0 && compression <= choosing;
    any_chooses = any_chooses || chooses;
    layers.push_back({.feed_forward = FeedForward::experts,
                      .window = config.integer("sliding_window", 128),
                      .keys_as_values = true,
                      .sinks = true,
                      .compression = compression,
                      .chooses = chooses});
  }
  if (any_chooses)
    spec.indexer = {.heads = config.required("index_n_heads"),
                    .head_dim = config.required("index_head_dim"),
                    .keys = config.required("index_topk")};
  set_blocks(spec, layers);
}

// Blocks of keys are chosen in the layers that sparse_attention_freq lists; the others see all.
void read_minimax_m3(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 1 << 20, false});
  const std::int64_t width = config.integer("moe_intermediate_size", spec.feed_forward);
  spec.feed_forward = config.integer("dense_intermediate_size", spec.feed_forward);
  spec.query_key_norm = config.flag("use_qk_norm", true);
  spec.attention_gate = config.flag("attention_output_gate", false);
  if (config.text("qk_norm_type", "per_head") != "per_head")
    config.unsupported("qk_norm_type", "a norm over the whole width of queries");
  spec.experts = {
      .count = config.required("num_local_experts"),
      .active = config.required("num_experts_per_tok"),
      .width = width,
      .shared_width = config.integer("n_shared_experts", 0, 0) * config.integer("shared_intermediate_size", width),
      .selection_bias = config.flag("use_routing_bias", true)};
  const HfObject sparse = config.object("sparse_attention_config");
  const std::vector<std::int64_t> chosen = sparse.integers("sparse_attention_freq"),
                                  experts = config.integers("moe_layer_freq");
  const bool chooses = sparse.flag("use_sparse_attention", !chosen.empty());
  for (const auto& [of, key, list] :
       {std::tuple(&sparse, "sparse_attention_freq", &chosen), std::tuple(&config, "moe_layer_freq", &experts)})
    if (!list->empty() && static_cast<std::int64_t>(list->size()) != spec.layers)
      of->fail(key, "not one for each layer", "correct it");
  const std::int64_t dense = config.integer("first_k_dense_replace", 0, 0);
  std::vector<Block> layers;
  for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    Block block;
    block.chooses = chooses && !chosen.empty() && chosen[at] != 0;
    if (experts.empty() ? layer >= dense : experts[at] != 0) block.feed_forward = FeedForward::experts;
    layers.push_back(block);
  }
  if (chooses) {
    const std::int64_t block = sparse.required("sparse_block_size");
    spec.indexer = {.heads = sparse.required("sparse_num_index_heads"),
                    .head_dim = sparse.required("sparse_index_dim"),
                    .keys = sparse.required("sparse_topk_blocks") * block,
                    .block = block};
  }
  set_blocks(spec, layers);
}

// Lightning attention but in every so many layers: "attn_type_list", or "layer_types" as transformers has it. Norms
// come before the parts; what they give joins the stream, weighed, which changes neither memory nor work.
void read_minimax_text(const HfObject& config, ModelSpec& spec) {
  read_llama_shape(config, spec, {8, 128, 10'240'000, false});
  set_attention_bias(config, spec);
  spec.experts = {.count = config.required("num_local_experts"),
                  .active = config.required("num_experts_per_tok"),
                  .width = spec.feed_forward,
                  .shared_width = config.integer("shared_intermediate_size", 0, 0)};
  spec.linear = {.key_heads = spec.heads,
                 .value_heads = spec.heads,
                 .key_dim = spec.head_dim,
                 .value_dim = spec.head_dim,
                 .fixed_decay = true};
  const std::vector<std::int64_t> types = config.integers("attn_type_list");
  const std::vector<std::string> words = config.texts("layer_types");
  const char* const key = types.empty() ? "layer_types" : "attn_type_list";
  if (static_cast<std::int64_t>(std::max(types.size(), words.size())) != spec.layers)
    config.fail(key, "not one for each layer", "add it, as the model's published config.json has it");
  std::vector<Block> layers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.layers); ++i) {
    const bool is_full = types.empty() ? words[i] == "full_attention" : types[i] == 1;
    if (!is_full && (types.empty() ? words[i] != "linear_attention" : types[i] != 0))
      config.unsupported(key, types.empty() ? fmt::format("\"{}\"", words[i]) : fmt::format("{}", types[i]));
    layers.push_back({.mixer = is_full ? Mixer::attention : Mixer::delta_rule, .feed_forward = FeedForward::experts});
  }
  if (std::none_of(layers.begin(), layers.end(), [](const Block& b) { return b.mixer == Mixer::delta_rule; }))
    spec.linear = {};
  set_blocks(spec, layers);
}

// A layer of theirs is two of latent attention before a dense block, the first with experts beside it; what these give
// joins the stream one sub-layer later there.
void read_longcat_flash(const HfObject& config, ModelSpec& spec) {
  spec.vocabulary = config.required("vocab_size");
  spec.hidden = config.required("hidden_size");
  spec.layers = 2 * config.required(config.has("num_layers") ? "num_layers" : "num_hidden_layers");
  spec.heads = config.required("num_attention_heads");
  spec.feed_forward = config.required("ffn_hidden_size");
  spec.max_positions = config.integer("max_position_embeddings", 131'072);
  spec.tied_embeddings = config.flag("tie_word_embeddings", false);
  spec.norm = NormKind::rms_norm;
  spec.positions = Positions::rotary;
  spec.activation = gated_activation(config, "hidden_act", "silu");
  set_attention_bias(config, spec);
  read_latent(config, spec);
  const std::int64_t count = config.required("n_routed_experts"), idle = config.integer("zero_expert_num", 0, 0),
                     chosen = config.required("moe_topk");
  if (config.flag("router_bias", false)) config.unsupported("router_bias", "a router with a bias");
  spec.experts = {.count = count,
                  .active = std::max<std::int64_t>(1, chosen * count / (count + idle)),
                  .width = config.required("expert_ffn_hidden_size"),
                  .selection_bias = true,
                  .idle = idle};
  spec.blocks = {{.feed_forward = FeedForward::both}, {.feed_forward = FeedForward::dense}};
}

}  // namespace spillway::models::hf
