#include "models/spec/model_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace spillway::models {
namespace {

using Fault = std::optional<ShapeFault>;

Fault attention_fault(const ModelSpec& spec) {
  if (spec.heads % spec.kv_heads != 0)
    return ShapeFault{"kv_heads",
                      fmt::format("{} query heads can't share {} key heads evenly", spec.heads, spec.kv_heads),
                      "give a divisor of heads"};
  if (spec.fused_qkv && spec.kv_heads != spec.heads)
    return ShapeFault{"fused_qkv", "a packed projection with shared key heads is not modelled",
                      "set it to false: the count of parameters is the same"};
  if (spec.query_key_norm && spec.wide_query_key_norm)
    return ShapeFault{"wide_query_key_norm", "given along with query_key_norm", "keep one of the two"};
  if (spec.fused_qkv && (spec.query_key_norm || spec.wide_query_key_norm))
    return ShapeFault{"fused_qkv", "norms of queries and keys need them apart", "set it to false"};
  if (spec.head_gate && (spec.attention_gate || spec.fused_qkv || spec.has_latent() || spec.has_encoder()))
    return ShapeFault{"head_gate", "given along with attention_gate, fused_qkv, latent_attention or an encoder",
                      "set it to false"};
  if (spec.global_every > 0 && spec.attention_window == 0)
    return ShapeFault{"global_every", "no window to make an exception from", "add attention_window"};
  if (spec.attention_gate && (spec.fused_qkv || spec.has_encoder()))
    return ShapeFault{"attention_gate", "given along with fused_qkv or an encoder", "set it to false"};
  const bool is_chosen = spec.any_block([](const Block& block) { return block.chooses; });
  if (spec.has_indexer() && spec.latent.query_rank == 0 && !is_chosen)
    return ShapeFault{"indexer", "its queries come from the bottleneck of latent attention's",
                      "add latent_attention with a query_rank, blocks that choose, or remove it"};
  if (is_chosen && (!spec.has_indexer() || spec.has_latent()))
    return ShapeFault{"blocks", spec.has_latent() ? "with latent attention every layer chooses" : "no indexer chooses",
                      "add an indexer, or leave `chooses` out"};
  if (spec.has_indexer() && (spec.has_latent() || spec.has_compressed()) == (spec.indexer.block > 0))
    return ShapeFault{"indexer/block", "is of keys that have heads, and of these alone",
                      spec.indexer.block > 0 ? "remove it" : "add it"};
  if (!spec.has_latent()) return {};
  if (spec.fused_qkv || spec.kv_heads != spec.heads || spec.query_key_norm || spec.wide_query_key_norm)
    return ShapeFault{"latent_attention", "does not go with fused_qkv, kv_heads or norms of queries and keys",
                      "remove those"};
  if (spec.positions != Positions::rotary)
    return ShapeFault{"positions", "latent attention has rotary positions", "write \"rotary\""};
  return {};
}

// One causal stack of layers, normed before what they are made of, which stands one behind the other.
bool is_plain_decoder(const ModelSpec& spec) {
  return !spec.has_encoder() && !spec.reads_images() && spec.mask == AttentionMask::causal &&
         spec.norm_placement == NormPlacement::pre && spec.block_layout == BlockLayout::sequential;
}

Fault linear_fault(const ModelSpec& spec) {
  const LinearAttention& linear = spec.linear;
  if (!spec.has_linear()) return {};
  if (linear.whole_gate && linear.gate_rank == 0)
    return ShapeFault{"linear_attention/whole_gate", "given without gate_rank", "add that, or remove it"};
  if (linear.fixed_decay != (linear.convolution == 0))
    return ShapeFault{"linear_attention/convolution",
                      linear.fixed_decay ? "given beside fixed_decay" : "missing, but decays have weights",
                      linear.fixed_decay ? "remove it" : "add it, or fixed_decay"};
  if (linear.fixed_decay &&
      (linear.gate_rank > 0 || linear.key_heads != linear.value_heads || linear.key_dim != linear.value_dim))
    return ShapeFault{"linear_attention/fixed_decay", "needs heads of one size, and no gate_rank", "correct it"};
  if (linear.value_heads % linear.key_heads != 0)
    return ShapeFault{"linear_attention/value_heads",
                      fmt::format("no multiple of the {} heads of keys", linear.key_heads), "correct one of the two"};
  if (linear.gate_rank > 0 && linear.value_heads != linear.key_heads)
    return ShapeFault{"linear_attention/gate_rank", "gates by channel need as many heads of values as of keys",
                      "correct one of the two"};
  if (!is_plain_decoder(spec))
    return ShapeFault{"linear_attention", "is modelled in causal decoders with norm_placement \"pre\" alone",
                      "see docs/internals/models.md for what that is"};
  return {};
}

// Of compressed attention, and of residual streams and groups.
Fault mixture_fault(const ModelSpec& spec) {
  const CompressedAttention& sizes = spec.compressed;
  if (spec.streams > 1 && spec.residual_group > 0)
    return ShapeFault{"residual_group", "given along with streams", "keep one of the two"};
  if ((spec.streams > 1 || spec.residual_group > 0 || spec.has_compressed()) && !is_plain_decoder(spec))
    return ShapeFault{spec.has_compressed() ? "compressed_attention"
                      : spec.streams > 1    ? "streams"
                                            : "residual_group",
                      "is modelled in causal decoders with norm_placement \"pre\" alone",
                      "see docs/internals/models.md for what that is"};
  if (!spec.norm_weights && (spec.norm != NormKind::layer_norm || spec.norm_placement != NormPlacement::pre ||
                             spec.streams > 1 || spec.residual_group > 0))
    return ShapeFault{"norm_weights", "false in LayerNorms before a branch alone", "set it to true"};
  if (spec.embedding_width > 0 &&
      (spec.has_encoder() || spec.reads_images() || spec.pretraining_heads || spec.masked_lm_head ||
       spec.token_types > 0 || spec.has_layer_inputs() || spec.streams > 1 || spec.residual_group > 0))
    return ShapeFault{"embedding_width", "given beside parts that read an embedding as wide as the layers",
                      "remove it"};
  const bool compresses = spec.any_block([](const Block& block) { return block.compression > 0; });
  if (!spec.has_compressed())
    return compresses ? Fault(ShapeFault{"compressed_attention", "missing, but blocks compress keys", "add it"})
                      : std::nullopt;
  if (spec.has_latent() || spec.has_linear() || spec.has_mamba() || spec.has_convolutions() || spec.fused_qkv ||
      spec.query_key_norm || spec.wide_query_key_norm || spec.attention_gate || spec.head_gate || spec.shares_keys() ||
      spec.qkv_bias || spec.positions != Positions::rotary || spec.kv_heads != 1)
    return ShapeFault{"compressed_attention", "goes with rotary positions and one key head, and no other attention",
                      "correct the rest"};
  if (spec.heads % sizes.output_groups != 0)
    return ShapeFault{"compressed_attention/output_groups", fmt::format("does not divide {} heads", spec.heads),
                      "give a divisor"};
  if (spec.any_block([](const Block& b) { return b.chooses && b.compression == 0; }))
    return ShapeFault{"blocks", "one chooses among compressed keys and has none", "add its compression"};
  return {};
}

// What a kind of block needs of the model.
Fault block_fault(const ModelSpec& spec) {
  if (spec.blocks.empty())
    return spec.has_mamba() || spec.has_convolutions()
               ? Fault(ShapeFault{"blocks", "missing, but there are sizes of mixers besides attention", "add them"})
               : std::nullopt;
  if (spec.has_encoder() || spec.reads_images()) return ShapeFault{"blocks", "are of decoders alone", "leave them out"};
  const auto any = [&spec](bool (*is)(const Block&)) { return spec.any_block(is); };
  if (any([](const Block& b) { return b.has_mamba(); }) != spec.has_mamba())
    return ShapeFault{"mamba", spec.has_mamba() ? "no block has it" : "missing, but blocks have it", "correct it"};
  if (any([](const Block& b) { return b.mixer == Mixer::convolution; }) != spec.has_convolutions())
    return ShapeFault{"short_convolution", spec.has_convolutions() ? "no block has it" : "missing, but blocks have it",
                      "correct it"};
  if (any([](const Block& b) { return b.mixer == Mixer::delta_rule; }) != spec.has_linear())
    return ShapeFault{"linear_attention", spec.has_linear() ? "no block has it" : "missing, but blocks have it",
                      "correct it"};
  if (any([](const Block& b) { return b.has_experts(); }) != spec.has_experts())
    return ShapeFault{"experts", spec.has_experts() ? "no block has them" : "missing, but blocks have them",
                      "correct it"};
  if (any([](const Block& b) { return b.feed_forward == FeedForward::both; }) &&
      spec.norm_placement != NormPlacement::sandwich && !is_plain_decoder(spec))
    return ShapeFault{"blocks", "a dense block beside experts needs norm_placement \"sandwich\" or \"pre\"",
                      "correct it"};
  if (any([](const Block& b) { return b.mixer != Mixer::attention || b.feed_forward == FeedForward::none; }) &&
      !is_plain_decoder(spec))
    return ShapeFault{"blocks",
                      "other mixers than attention, and layers of one part, are modelled in causal decoders with "
                      "norm_placement \"pre\" alone",
                      "see docs/internals/models.md for what that is"};
  if (any([](const Block& b) { return b.mixer == Mixer::none && b.feed_forward == FeedForward::none; }))
    return ShapeFault{"blocks", "one has neither a mixer nor a feed-forward block", "leave it out"};
  if (spec.blocks.front().shares_keys)
    return ShapeFault{"blocks", "the first layer has no keys before it to share", "correct it"};
  for (const Block& each : spec.blocks) {
    const std::int64_t heads = each.heads > 0 ? each.heads : spec.heads,
                       keys = each.kv_heads > 0 ? each.kv_heads : spec.kv_heads;
    if (heads % keys != 0)
      return ShapeFault{"blocks", fmt::format("{} query heads can't share {} key heads evenly", heads, keys),
                        "correct one of the two"};
    const bool own_sizes = each.heads + each.kv_heads + each.head_dim + each.value_dim > 0 || each.keys_as_values;
    if (own_sizes && (spec.has_latent() || spec.fused_qkv))
      return ShapeFault{"blocks", "heads of their own don't go with latent_attention or fused_qkv", "remove them"};
    if (each.keys_as_values && each.value_dim > 0 && each.value_dim != each.head_dim)
      return ShapeFault{"blocks", "values that are keys have their width", "leave value_dim out"};
  }
  if (spec.global_every > 0 || spec.attention_window > 0 || spec.linear.full_every > 0 ||
      spec.experts.first_dense_layers > 0 || spec.experts.every > 1)
    return ShapeFault{"blocks", "say what each layer has; a second rule for that is given beside them",
                      "leave out attention_window, global_every, full_every, every and first_dense_layers"};
  const Mamba& mamba = spec.mamba;
  if (mamba.heads % std::max<std::int64_t>(1, mamba.groups) != 0)
    return ShapeFault{"mamba/groups", fmt::format("does not divide the {} heads", mamba.heads), "give a divisor"};
  return {};
}

Fault position_fault(const ModelSpec& spec) {
  const bool relative = spec.positions == Positions::relative_bias;
  if (relative != (spec.position_buckets > 0))
    return ShapeFault{"position_buckets", relative ? "missing" : "given without relative positions",
                      "it goes with positions \"relative_bias\""};
  if (spec.fused_qkv && spec.positions == Positions::rotary)
    return ShapeFault{"fused_qkv", "a packed projection with rotary positions is not modelled",
                      "set it to false: the count of parameters is the same"};
  return {};
}

Fault expert_fault(const ModelSpec& spec) {
  if (!spec.has_experts()) return {};
  if (spec.experts.active > spec.experts.count)
    return ShapeFault{"experts/active", fmt::format("more than the {} experts there are", spec.experts.count),
                      "correct one of the two"};
  if (spec.experts.first_dense_layers > spec.layers)
    return ShapeFault{"experts/first_dense_layers", fmt::format("more than the {} layers", spec.layers),
                      "correct one of the two"};
  if (spec.feed_forward_bias)
    return ShapeFault{"feed_forward_bias", "experts with biases are not modelled", "set it to false"};
  const std::int64_t groups = spec.experts.groups;
  if (groups > 0 && (spec.experts.count % groups != 0 || spec.experts.chosen_groups > groups))
    return ShapeFault{"experts/groups", fmt::format("{} experts in {} groups", spec.experts.count, groups),
                      "give a divisor of count, and no more chosen_groups than groups"};
  if (spec.activation == Activation::xielu)
    return ShapeFault{"activation", "experts with slopes of their own are not modelled", "choose another"};
  if (spec.experts.shared_gate && spec.experts.shared_width == 0)
    return ShapeFault{"experts/shared_gate", "no shared experts to weigh", "add shared_width"};
  return {};
}

Fault stack_fault(const ModelSpec& spec) {
  if (spec.block_layout != BlockLayout::sequential && spec.norm_placement != NormPlacement::pre)
    return ShapeFault{"block_layout", "parallel blocks need norm_placement \"pre\"", "correct one of the two"};
  if (!spec.has_encoder()) return {};
  if (spec.has_experts() || spec.has_latent() || spec.fused_qkv || spec.norm_placement != NormPlacement::pre ||
      spec.block_layout != BlockLayout::sequential || spec.pretraining_heads || spec.masked_lm_head ||
      spec.token_types > 0 || (spec.positions != Positions::relative_bias && spec.positions != Positions::learned))
    return ShapeFault{"encoder_layers", "an encoder beside the decoder is modelled for the T5 kind only",
                      "see docs/internals/models.md for what that is"};
  return {};
}

Fault head_fault(const ModelSpec& spec) {
  if ((spec.pretraining_heads || spec.masked_lm_head) && !spec.tied_embeddings)
    return ShapeFault{spec.pretraining_heads ? "pretraining_heads" : "masked_lm_head",
                      "the masked-LM decoder shares the embedding matrix", "set tied_embeddings to true"};
  if (spec.pretraining_heads && spec.masked_lm_head)
    return ShapeFault{"masked_lm_head", "part of pretraining_heads already", "keep one of the two"};
  if (spec.reads_images() != (spec.vocabulary == 0))
    return ShapeFault{"vocabulary", spec.reads_images() ? "images have none" : "missing",
                      "give vocabulary or patches, not both"};
  if (spec.reads_images() != (spec.classes > 0))
    return ShapeFault{"classes", "a classifier goes with images", "give both classes and patches, or neither"};
  if (!spec.reads_images()) return {};
  if (spec.patches.image % spec.patches.patch != 0)
    return ShapeFault{"patches/patch", fmt::format("does not divide {} pixels", spec.patches.image), "give a divisor"};
  if (spec.max_positions != spec.patches.count() + 1)
    return ShapeFault{"max_positions", "not the patches and the class token",
                      fmt::format("write {}", spec.patches.count() + 1)};
  if (spec.mask != AttentionMask::bidirectional || spec.positions != Positions::learned || spec.has_experts() ||
      spec.has_encoder() || spec.token_types > 0 || spec.pretraining_heads || spec.masked_lm_head || spec.head_bias)
    return ShapeFault{"patches", "images are modelled for the ViT kind only",
                      "see docs/internals/models.md for what that is"};
  return {};
}

Fault size_fault(const ModelSpec& spec) {
  constexpr double most_parameters = 1e16;  // their bytes still fit 64 bits
  double count = 0;
  for (const Parameter& parameter : parameters(spec))
    count += static_cast<double>(parameter.rows) * static_cast<double>(parameter.columns);
  if (count > most_parameters)
    return ShapeFault{"layers", "the shape has more than 10^16 parameters", "correct the shape"};
  return {};
}

}  // namespace

std::optional<ShapeFault> shape_fault(const ModelSpec& spec) {
  for (const auto& rule : {attention_fault, linear_fault, mixture_fault, block_fault, position_fault, expert_fault,
                           stack_fault, head_fault, size_fault})
    if (Fault fault = rule(spec)) return fault;
  return {};
}

}  // namespace spillway::models
