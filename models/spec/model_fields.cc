#include "models/spec/model_fields.h"

#include "base/field_schema.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

// Dimensions up to these keep every product of two below 2^63.
constexpr double widest = 1 << 20;
constexpr double longest = 1 << 24;

// In the order of the enums.
const Words mask_words = {{"causal"}, {"bidirectional"}};
const Words norm_words = {{"layer_norm"}, {"rms_norm"}};
const Words placement_words = {{"pre", "x + f(norm(x))"},
                               {"post", "norm(x + f(x)), BERT"},
                               {"sandwich", "x + norm(f(norm(x))), Gemma 2"},
                               {"branch", "x + norm(f(x)), OLMo 2"}};
const Words block_words = {{"sequential"},
                           {"parallel", "attention and feed-forward both read x, through a norm each (GPT-NeoX)"},
                           {"parallel_one_norm", "through one (GPT-J)"}};
const Words activation_words = {{"gelu"},
                                {"relu"},
                                {"silu_gated", "function(gate) * up (SwiGLU)"},
                                {"gelu_gated", "the same with GELU (GeGLU)"},
                                {"relu_squared", "the square of ReLU (Nemotron)"},
                                {"xielu", "with two slopes that each layer learns (Apertus)"}};
const Words position_words = {{"learned"}, {"rotary"}, {"alibi"}, {"relative_bias"}, {"none"}};
const Words mixer_words = {{"attention"},
                           {"delta_rule", "linear_attention"},
                           {"mamba", "Mamba-2"},
                           {"beside", "Mamba-2 and attention, side by side (Falcon-H1)"},
                           {"convolution", "a gated short convolution (LFM2)"},
                           {"none"}};
const Words feed_forward_words = {{"dense"}, {"experts"}, {"none"}, {"both", "a dense block beside experts (Gemma 4)"}};
const Words basis_words = {{"checkpoint", "the published weights"},
                           {"publication", "a paper or documentation that prints it in full"},
                           {"config", "arithmetic on the configuration"}};

void describe_shape(ModelSpec& spec, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "layers",
                   .min = 1,
                   .max = 4096,
                   .about = "Of the decoder when there is an encoder too.",
                   .required = true},
                  spec.layers);
  fields::integer(visitor,
                  {.key = "encoder_layers", .max = 4096, .about = "T5: layers of the encoder beside the decoder."},
                  spec.encoder_layers);
  fields::integer(
      visitor, {.key = "hidden", .min = 1, .max = widest, .about = "Width of the residual stream.", .required = true},
      spec.hidden);
  fields::integer(visitor, {.key = "heads", .min = 1, .max = 4096, .about = "Query heads.", .required = true},
                  spec.heads);
  fields::integer_or_none(
      visitor,
      {.key = "kv_heads", .min = 1, .max = 4096, .about = "Key and value heads, a divisor of heads. Default: heads."},
      spec.kv_heads);
  fields::integer_or_none(visitor,
                          {.key = "head_dim",
                           .min = 1,
                           .max = 65536,
                           .about = "Of queries and keys. Default: hidden / heads. Not with latent_attention."},
                          spec.head_dim);
  fields::integer(visitor,
                  {.key = "feed_forward",
                   .min = 1,
                   .max = widest,
                   .about = "Width of a (dense) feed-forward block; of gated ones one of the two halves.",
                   .required = true},
                  spec.feed_forward);
  fields::integer_or_none(visitor,
                          {.key = "vocabulary", .min = 1, .max = longest, .about = "Rows of the embedding matrix."},
                          spec.vocabulary);
  fields::integer(visitor,
                  {.key = "max_positions",
                   .min = 1,
                   .max = longest,
                   .about = "Longest sequence; rows of a learned position table. With patches: their number and 1.",
                   .required = true},
                  spec.max_positions);
  fields::integer(
      visitor,
      {.key = "position_offset", .max = 65536, .about = "Unused leading rows of the learned position table (OPT: 2)."},
      spec.position_offset);
  fields::integer(visitor,
                  {.key = "embedding_width",
                   .max = 1 << 20,
                   .about = "Width of the embedding, with a matrix into the layers and one out of them (OPT-350m); 0: "
                            "the layers'."},
                  spec.embedding_width);
  fields::integer_or_none(
      visitor, {.key = "position_buckets", .min = 1, .max = 65536, .about = "Rows of the relative bias (T5: 32)."},
      spec.position_buckets);
  fields::integer(visitor, {.key = "token_types", .max = 65536}, spec.token_types);
  fields::integer_or_none(
      visitor, {.key = "classes", .min = 1, .max = longest, .about = "Of the classifier of images."}, spec.classes);
  fields::integer(
      visitor, {.key = "attention_window", .max = longest, .about = "Tokens that a token attends to at most; 0: all."},
      spec.attention_window);
  fields::integer(visitor,
                  {.key = "global_every",
                   .max = 4096,
                   .about = "Layer i has no window if (i + 1) is a multiple; 0: all layers have it."},
                  spec.global_every);
  fields::integer(visitor,
                  {.key = "streams",
                   .min = 1,
                   .max = 64,
                   .about = "Residual streams that every sub-layer reads and writes a mixture of (DeepSeek-V4)."},
                  spec.streams);
  fields::integer(visitor,
                  {.key = "residual_group",
                   .max = 4096,
                   .about = "Every sub-layer reads a mixture of what earlier groups of so many layers gave (Kimi K3); "
                            "0: the sum."},
                  spec.residual_group);
  fields::integer(visitor,
                  {.key = "held_parameters",
                   .max = 0x1p50,
                   .about = "Of other parts, as a vision tower: held frozen in 16 bits and not run."},
                  spec.held_parameters);
  fields::word(visitor, {.key = "tower", .about = "The vision tower by its kind; in place of held_parameters."},
               spec.tower_name, tower_words());
}

void describe(LatentAttention& latent, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "query_rank", .max = 65536, .about = "0: queries are projected directly."},
                  latent.query_rank);
  fields::integer(visitor, {.key = "kv_rank", .min = 1, .max = 65536, .required = true}, latent.kv_rank);
  fields::integer(visitor,
                  {.key = "rope_dim",
                   .min = 1,
                   .max = 32768,
                   .about = "Per query head, and of the one key part that all heads share.",
                   .required = true},
                  latent.rope_dim);
  fields::integer(
      visitor, {.key = "nope_dim", .min = 1, .max = 32768, .about = "Per head, without positions.", .required = true},
      latent.nope_dim);
  fields::integer(visitor, {.key = "value_dim", .min = 1, .max = 65536, .about = "Per head.", .required = true},
                  latent.value_dim);
}

void describe(Indexer& indexer, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "heads", .min = 1, .max = 4096, .required = true}, indexer.heads);
  fields::integer(visitor, {.key = "head_dim", .min = 1, .max = 65536, .required = true}, indexer.head_dim);
  fields::integer(visitor,
                  {.key = "keys",
                   .min = 1,
                   .max = longest,
                   .about = "Tokens attended to at most; of compressed keys so many of these.",
                   .required = true},
                  indexer.keys);
  fields::integer(visitor,
                  {.key = "block",
                   .max = longest,
                   .about = "Keys are chosen in blocks of so many neighbours (MiniMax-M3); 0: one by one."},
                  indexer.block);
}

void describe(CompressedAttention& compressed, FieldVisitor& visitor) {
  fields::integer(visitor,
                  {.key = "query_rank", .min = 1, .max = 65536, .about = "Of queries' bottleneck.", .required = true},
                  compressed.query_rank);
  fields::integer(visitor,
                  {.key = "rope_dim", .min = 1, .max = 32768, .about = "Rotated part of a head.", .required = true},
                  compressed.rope_dim);
  fields::integer(visitor,
                  {.key = "output_groups", .min = 1, .max = 4096, .about = "Of heads, a divisor.", .required = true},
                  compressed.output_groups);
  fields::integer(
      visitor,
      {.key = "output_rank", .min = 1, .max = 65536, .about = "That each group's results become.", .required = true},
      compressed.output_rank);
}

void describe(LinearAttention& linear, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "key_heads", .min = 1, .max = 4096, .required = true}, linear.key_heads);
  fields::integer(visitor,
                  {.key = "value_heads", .min = 1, .max = 4096, .about = "A multiple of key_heads.", .required = true},
                  linear.value_heads);
  fields::integer(visitor, {.key = "key_dim", .min = 1, .max = 65536, .about = "Per head.", .required = true},
                  linear.key_dim);
  fields::integer(visitor, {.key = "value_dim", .min = 1, .max = 65536, .about = "Per head.", .required = true},
                  linear.value_dim);
  fields::integer(visitor,
                  {.key = "convolution",
                   .max = 1024,
                   .about = "Tokens that the convolution of queries, keys and values sees; 0: with fixed_decay alone."},
                  linear.convolution);
  fields::integer(visitor,
                  {.key = "full_every",
                   .max = 4096,
                   .about = "Layer i has softmax attention if (i + 1) is a multiple; 0: none has."},
                  linear.full_every);
  fields::integer(
      visitor,
      {.key = "gate_rank",
       .max = 65536,
       .about = "Each channel has a decay, made through so narrow a bottleneck (Kimi Linear); 0: each head."},
      linear.gate_rank);
  fields::flag(
      visitor,
      {.key = "fixed_decay",
       .about = "Lightning attention: decays without weights, no convolution, one norm over all heads' results "
                "(MiniMax-Text-01)."},
      linear.fixed_decay);
  fields::flag(visitor,
               {.key = "whole_gate", .about = "With gate_rank: the result's gate has no bottleneck (Kimi K3)."},
               linear.whole_gate);
}

void describe(Mamba& mamba, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "heads", .min = 1, .max = 4096, .required = true}, mamba.heads);
  fields::integer(visitor, {.key = "head_dim", .min = 1, .max = 65536, .required = true}, mamba.head_dim);
  fields::integer(visitor, {.key = "state", .min = 1, .max = 65536, .about = "Its width.", .required = true},
                  mamba.state);
  fields::integer(
      visitor,
      {.key = "groups", .min = 1, .max = 4096, .about = "Of heads that share what goes into their states and out."},
      mamba.groups);
  fields::integer(visitor, {.key = "convolution", .min = 1, .max = 1024, .about = "Tokens that it sees."},
                  mamba.convolution);
  fields::integer(visitor, {.key = "chunk", .min = 1, .max = 65536, .about = "Tokens that are worked on at once."},
                  mamba.chunk);
  fields::flag(visitor, {.key = "convolution_bias"}, mamba.convolution_bias);
  fields::flag(visitor, {.key = "bias", .about = "Of the products into it and out of it."}, mamba.bias);
  fields::flag(visitor, {.key = "norm", .about = "A gated norm of its results; false: the gate alone."}, mamba.norm);
  fields::integer(
      visitor, {.key = "step_rank", .max = 65536, .about = "Of the first Mamba: the bottleneck of steps; 0: Mamba-2."},
      mamba.step_rank);
  fields::flag(visitor, {.key = "inner_norms", .about = "Of the first Mamba: norms in the bottleneck (Jamba)."},
               mamba.inner_norms);
}

void describe(ShortConvolution& convolution, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "tokens", .min = 1, .max = 1024, .about = "That it sees.", .required = true},
                  convolution.tokens);
  fields::flag(visitor, {.key = "bias"}, convolution.bias);
}

void describe(Block& block, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "count", .min = 1, .max = 4096, .about = "So many layers behind each other."},
                  block.count);
  fields::word(visitor, {.key = "mixer"}, block.mixer, mixer_words);
  fields::word(visitor, {.key = "feed_forward"}, block.feed_forward, feed_forward_words);
  fields::integer(visitor, {.key = "window", .max = longest, .about = "Tokens attended to at most; 0: all."},
                  block.window);
  fields::integer_or_none(visitor, {.key = "heads", .min = 1, .max = 4096}, block.heads);
  fields::integer_or_none(visitor, {.key = "kv_heads", .min = 1, .max = 4096}, block.kv_heads);
  fields::integer_or_none(visitor, {.key = "head_dim", .min = 1, .max = 65536}, block.head_dim);
  fields::integer_or_none(
      visitor, {.key = "value_dim", .min = 1, .max = 65536, .about = "Per head. Default: head_dim."}, block.value_dim);
  fields::integer_or_none(
      visitor, {.key = "width", .min = 1, .max = widest, .about = "Of the dense feed-forward block."}, block.width);
  fields::flag(visitor, {.key = "keys_as_values", .about = "One projection makes both."}, block.keys_as_values);
  fields::flag(
      visitor,
      {.key = "shares_keys",
       .about = "Keys and values are those of the last layer before of the same kind, with or without a window."},
      block.shares_keys);
  fields::flag(visitor, {.key = "sinks", .about = "A learned number per head in each softmax."}, block.sinks);
  fields::integer(
      visitor,
      {.key = "compression", .max = longest, .about = "Tokens that a compressed key stands for; 0: there are none."},
      block.compression);
  fields::flag(visitor, {.key = "chooses", .about = "It sees what the indexer chooses."}, block.chooses);
}

void describe(LayerInputs& inputs, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "width", .min = 1, .max = 65536, .about = "Of one layer.", .required = true},
                  inputs.width);
  fields::integer(visitor,
                  {.key = "vocabulary", .min = 1, .max = longest, .about = "Rows of the table.", .required = true},
                  inputs.vocabulary);
}

void describe(Experts& experts, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "count", .min = 1, .max = 65536, .required = true}, experts.count);
  fields::integer(
      visitor, {.key = "active", .min = 1, .max = 65536, .about = "That see a token, at most count.", .required = true},
      experts.active);
  fields::integer(visitor,
                  {.key = "width", .min = 1, .max = widest, .about = "Feed-forward width of one.", .required = true},
                  experts.width);
  fields::integer(visitor, {.key = "shared_width", .max = widest, .about = "Of all shared experts together."},
                  experts.shared_width);
  fields::integer(visitor, {.key = "first_dense_layers", .max = 4096}, experts.first_dense_layers);
  fields::integer(visitor,
                  {.key = "every", .min = 1, .max = 4096, .about = "Layer i has experts if (i + 1) is a multiple."},
                  experts.every);
  fields::flag(visitor,
               {.key = "shared_gate", .about = "A sigmoid of the token weighs the shared experts (Qwen2-MoE)."},
               experts.shared_gate);
  fields::flag(
      visitor,
      {.key = "selection_bias", .about = "A number per expert added to the scores it is selected by (DeepSeek-V3)."},
      experts.selection_bias);
  fields::flag(visitor, {.key = "bias", .about = "Of the router and of each expert's matrices (GPT-OSS)."},
               experts.bias);
  fields::integer(visitor,
                  {.key = "groups", .max = 65536, .about = "Of neighbours, of which a token chooses from some."},
                  experts.groups);
  fields::integer(visitor,
                  {.key = "chosen_groups", .max = 65536, .about = "So many of them; 0: experts are in no groups."},
                  experts.chosen_groups);
  fields::integer(visitor,
                  {.key = "latent_width",
                   .max = widest,
                   .about = "Routed experts work in so wide a space; 0: in the model's own (Nemotron 3 Ultra)."},
                  experts.latent_width);
  fields::flag(visitor, {.key = "latent_norm", .about = "A norm of what they read there (Kimi K3)."},
               experts.latent_norm);
  fields::integer(
      visitor,
      {.key = "idle",
       .max = 65536,
       .about = "Beside the counted ones, that give a token back as it came; active counts none (LongCat-Flash)."},
      experts.idle);
}

void describe(Patches& patches, FieldVisitor& visitor) {
  fields::integer(
      visitor,
      {.key = "image", .min = 1, .max = 65536, .about = "Pixels per side, a multiple of patch.", .required = true},
      patches.image);
  fields::integer(visitor, {.key = "patch", .min = 1, .max = 65536, .required = true}, patches.patch);
  fields::integer(visitor, {.key = "channels", .min = 1, .max = 65536, .required = true}, patches.channels);
}

void describe_kinds(ModelSpec& spec, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "mask", .required = true}, spec.mask, mask_words);
  fields::word(visitor, {.key = "norm", .required = true}, spec.norm, norm_words);
  fields::word(visitor, {.key = "norm_placement", .required = true}, spec.norm_placement, placement_words);
  fields::word(visitor, {.key = "block_layout"}, spec.block_layout, block_words);
  fields::word(visitor, {.key = "activation", .required = true}, spec.activation, activation_words);
  fields::flag(visitor,
               {.key = "gelu_new", .about = "GELU's tanh form, which transformers computes operator by operator."},
               spec.gelu_new);
  fields::word(visitor, {.key = "positions", .required = true}, spec.positions, position_words);
  fields::flag(visitor, {.key = "fused_qkv", .about = "One projection for queries, keys and values."}, spec.fused_qkv);
  fields::flag(visitor, {.key = "qkv_bias"}, spec.qkv_bias);
  fields::flag(visitor, {.key = "output_bias"}, spec.output_bias);
  fields::flag(visitor, {.key = "feed_forward_bias"}, spec.feed_forward_bias);
  fields::flag(visitor, {.key = "norm_bias", .about = "Of LayerNorms."}, spec.norm_bias);
  fields::flag(visitor, {.key = "norm_weights", .about = "Of norms outside attention (OLMo: false)."},
               spec.norm_weights);
  fields::flag(visitor, {.key = "embedding_norm", .about = "A norm behind the embedding (BLOOM, ModernBERT)."},
               spec.embedding_norm);
  fields::flag(visitor, {.key = "head_bias", .about = "Of the LM head."}, spec.head_bias);
  fields::flag(visitor, {.key = "query_key_norm", .about = "A norm over each head of queries and keys (Qwen3)."},
               spec.query_key_norm);
  fields::flag(visitor, {.key = "attention_sinks", .about = "A learned number per head in each softmax (GPT-OSS)."},
               spec.attention_sinks);
  fields::flag(visitor,
               {.key = "attention_gate", .about = "A sigmoid of the token weighs attention's results (Qwen3-Next)."},
               spec.attention_gate);
  fields::flag(visitor, {.key = "head_gate", .about = "A sigmoid of the token weighs each head's results (Step-3.5)."},
               spec.head_gate);
  fields::flag(visitor, {.key = "wide_query_key_norm", .about = "The same over their whole width (OLMoE)."},
               spec.wide_query_key_norm);
  fields::flag(visitor, {.key = "tied_embeddings"}, spec.tied_embeddings);
  fields::flag(visitor,
               {.key = "pretraining_heads", .about = "BERT: pooler, masked-LM transform, next-sentence classifier."},
               spec.pretraining_heads);
  fields::flag(visitor, {.key = "masked_lm_head", .about = "The masked-LM transform alone."}, spec.masked_lm_head);
  fields::number(visitor, {.key = "dropout", .max = 1, .about = "Of embeddings and residuals.", .below_max = true},
                 spec.dropout);
  fields::number(
      visitor,
      {.key = "attention_dropout", .max = 1, .about = "Of attention weights. Default: dropout.", .below_max = true},
      spec.attention_dropout);
  fields::number(visitor,
                 {.key = "attention_softcap",
                  .max = 1000000,
                  .about = "Scores are c tanh(score / c); 0: as they are.",
                  .below_max = true},
                 spec.attention_softcap);
  fields::number(visitor,
                 {.key = "logit_softcap", .max = 1000000, .about = "The same of the logits.", .below_max = true},
                 spec.logit_softcap);
}
void describe_count(ModelSpec& spec, FieldVisitor& visitor) {
  std::optional<std::int64_t> count;
  if (spec.published_parameters > 0) count = spec.published_parameters;
  fields::integer(visitor, {.key = "count", .min = 1, .max = 0x1p60, .about = "Of the checkpoint.", .required = true},
                  count);
  spec.published_parameters = count.value_or(0);
  fields::word(visitor, {.key = "count_source", .about = "Where the count is known from."}, spec.published_basis,
               basis_words);
  fields::text(visitor, {.key = "source", .about = "Of the count, in words.", .required = true}, spec.published_source);
}

}  // namespace

void describe(ModelSpec& spec, FieldVisitor& visitor) {
  visitor.rule(R"({"oneOf": [{"required": ["vocabulary"], "not": {"required": ["patches"]}},
                             {"required": ["patches", "classes"], "not": {"required": ["vocabulary"]}}]})");
  visitor.head({.schema = "spillway.model", .version = 1, .noun = "a model file"});
  fields::text(visitor, {.key = "title", .about = "Name for people.", .required = true}, spec.title);
  fields::text(visitor, {.key = "source", .about = "Where the shape comes from.", .required = true}, spec.source);
  describe_shape(spec, visitor);
  fields::group(visitor,
                {.key = "latent_attention", .about = "Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434)."},
                [&] { describe(spec.latent, visitor); });
  fields::group(visitor, {.key = "indexer", .about = "Chooses the tokens that attention sees (DeepSeek-V3.2-Exp)."},
                [&] { describe(spec.indexer, visitor); });
  fields::group(
      visitor,
      {.key = "compressed_attention", .about = "A window, and keys that stand for several tokens each (DeepSeek-V4)."},
      [&] { describe(spec.compressed, visitor); });
  fields::group(visitor,
                {.key = "linear_attention",
                 .about = "A gated delta rule (arXiv:2412.06464) in place of softmax attention (Qwen3-Next)."},
                [&] { describe(spec.linear, visitor); });
  fields::group(visitor, {.key = "mamba", .about = "Mamba-2's mixer (arXiv:2405.21060), in the blocks that have it."},
                [&] { describe(spec.mamba, visitor); });
  fields::group(visitor, {.key = "short_convolution", .about = "In place of attention, in the blocks that have it."},
                [&] { describe(spec.convolution, visitor); });
  fields::list(
      visitor,
      {.key = "blocks",
       .about = "What the layers are made of, over and over where there are more than these count; sizes that "
                "are not given are the model's. Without them all layers are alike, except for the rules above."},
      spec.blocks, [&](Block& block) { describe(block, visitor); });
  fields::group(visitor, {.key = "experts", .about = "Feed-forward blocks of which a token sees some."},
                [&] { describe(spec.experts, visitor); });
  fields::group(visitor,
                {.key = "layer_inputs", .about = "A separate input for each layer, from a second table (Gemma 4)."},
                [&] { describe(spec.layer_inputs, visitor); });
  fields::group(visitor, {.key = "patches", .about = "Images in place of tokens (ViT)."},
                [&] { describe(spec.patches, visitor); });
  describe_kinds(spec, visitor);
  fields::group(visitor,
                {.key = "parameters", .about = "The published count; a shape that gives another one is refused."},
                [&] { describe_count(spec, visitor); });
}

std::string model_schema() {
  ModelSpec spec;
  FieldSchema schema;
  describe(spec, schema);
  return schema.document("spillway.model.v1", "spillway model",
                         "The shape of a transformer. parameters.count is the published checkpoint's; a file is "
                         "refused if its shape gives another count.");
}

}  // namespace spillway::models
