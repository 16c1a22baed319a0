#include "models/spec/model_part.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "models/spec/trainable.h"

namespace spillway::models {
namespace {

enum class Split : std::uint8_t { none, rows, columns, vocabulary };

// "attention.q" of "layers.3.attention.q.weight".
std::string stem_of(const Parameter& parameter) {
  std::string stem = parameter.name;
  constexpr std::string_view layers = "layers.";
  if (parameter.layer >= 0 || parameter.is_of_mtp())
    stem.erase(0, stem.find('.', stem.find(layers) + layers.size()) + 1);
  return stem.substr(0, stem.rfind('.'));
}

bool contains(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Split split_of(std::string_view stem) {
  if (contains({"attention.qkv",
                "attention.q",
                "attention.k",
                "attention.v",
                "attention.q_up",
                "attention.kv_up",
                "attention.gate",
                "attention.mixed",
                "attention.decay",
                "attention.convolution",
                "attention.time_bias",
                "attention.decay_log",
                "attention.sinks",
                "attention.decay_up",
                "attention.gate_up",
                "mamba.in",
                "mamba.convolution",
                "mamba.time_bias",
                "mamba.decay_log",
                "mamba.skip",
                "mamba.result_norm",
                "convolution.in",
                "convolution.filter",
                "cross_attention.q",
                "cross_attention.k",
                "cross_attention.v",
                "mlp.up",
                "mlp.gate",
                "mlp.gate_up",
                "mlp.shared.up",
                "mlp.shared.gate",
                "mlp.shared.gate_up",
                "mlp.experts.up",
                "mlp.experts.gate",
                "mlp.experts.gate_up",
                "join.projection"},
               stem))
    return Split::rows;
  if (contains({"attention.out", "cross_attention.out", "mamba.out", "convolution.out", "attention.relative_bias",
                "mlp.down", "mlp.shared.down", "mlp.experts.down"},
               stem))
    return Split::columns;
  if (contains({"embedding", "head", "mlm"}, stem)) return Split::vocabulary;
  return Split::none;
}

bool is_before_layers(std::string_view stem) {
  return contains(
      {"embedding", "embedding.projection", "positions", "token_types", "embedding_norm", "patches", "class_token"},
      stem);
}

// Lookups: the encoder's and the decoder's, where there are both.
std::int64_t embeddings_in(const ModelSpec& model, const ModelPart& part) {
  const bool of_decoder = model.has_encoder() && part.layers.contains(model.encoder_layers);
  return (part.has_embedding ? 1 : 0) + (of_decoder ? 1 : 0);
}

// The matrix that Megatron-LM has instead, and whether this parameter is the first in it.
struct Merged {
  std::string_view name;
  bool is_first = false;
};
Merged merged_with(const ModelSpec& model, const TrainingSetup& setup, std::string_view stem) {
  if (!setup.traits().megatron) return {};
  const bool has_values =
      !model.any_block([](const Block& block) { return block.keys_as_values || block.shares_keys; });
  const bool packed_attention = !model.has_latent() && !model.wide_query_key_norm && !model.attention_gate &&
                                !model.head_gate && has_values &&
                                (!model.query_key_norm || has_engine_layers(model, setup)) &&
                                (setup.flash_attention || model.kv_heads == model.heads);
  if (packed_attention && contains({"attention.q", "attention.k", "attention.v"}, stem))
    return {"attention.qkv", stem == "attention.q"};
  if (contains({"mlp.gate", "mlp.up"}, stem) && model.gated()) return {"mlp.gate_up", stem == "mlp.gate"};
  if (!has_merged_experts(model, setup) || !model.gated()) return {};
  if (contains({"mlp.experts.gate", "mlp.experts.up"}, stem))
    return {"mlp.experts.gate_up", stem == "mlp.experts.gate"};
  if (contains({"mlp.shared.gate", "mlp.shared.up"}, stem)) return {"mlp.shared.gate_up", stem == "mlp.shared.gate"};
  return {};
}

std::vector<Parameter> merged_parameters(const ModelSpec& model, const TrainingSetup& setup) {
  std::vector<Parameter> result;
  for (Parameter& parameter : parameters(model)) {
    const std::string stem = stem_of(parameter);
    const Merged merged = merged_with(model, setup, stem);
    if (merged.name.empty()) {
      result.push_back(std::move(parameter));
      continue;
    }
    const std::string name = parameter.name.substr(0, parameter.name.find(stem)) + std::string(merged.name) +
                             parameter.name.substr(parameter.name.rfind('.'));
    const auto found =
        std::find_if(result.rbegin(), result.rend(), [&](const Parameter& other) { return other.name == name; });
    if (found != result.rend()) {
      found->rows += parameter.rows;
    } else {
      result.push_back(parameter);
      result.back().name = name;
    }
  }
  return result;
}

std::int64_t padded(std::int64_t rows, const TrainingSetup& setup) {
  const std::int64_t unit = setup.tensor_parallel * (setup.traits().megatron ? 128 : 1);
  return (rows + unit - 1) / unit * unit;
}

bool is_query_key_norm(std::string_view stem) { return contains({"attention.q_norm", "attention.k_norm"}, stem); }

void split(Parameter& shape, std::string_view stem, const ModelSpec& model, const TrainingSetup& setup) {
  const std::int64_t t = shape.experts > 0 && setup.has_whole_experts() ? 1 : setup.tensor_parallel;
  if (is_query_key_norm(stem) && model.wide_query_key_norm) shape.rows /= t;
  const bool is_bias = shape.name.ends_with(".bias");
  switch (split_of(stem)) {
    case Split::none:
      return;
    case Split::rows:
      shape.rows /= t;
      return;
    case Split::columns:
      if (!is_bias) shape.columns /= t;
      return;
    case Split::vocabulary:
      if (setup.whole_vocabulary && stem == "embedding") return;
      shape.rows = padded(shape.rows, setup) / t;
      return;
  }
}

// The part's first layer of the stack (encoder or decoder) that `layer` is in; -1: it has none.
std::int64_t first_of_stack(const ModelSpec& model, const ModelPart& part, std::int64_t layer) {
  const bool encoder = model.is_encoder_layer(layer);
  const std::int64_t begin = std::max(part.layers.first, encoder ? 0 : model.encoder_layers);
  const std::int64_t end =
      std::min(part.layers.first + part.layers.count, encoder ? model.encoder_layers : model.all_layers());
  return begin < end ? begin : -1;
}

bool belongs(const Parameter& parameter, std::string_view stem, const ModelSpec& model, const ModelPart& part) {
  if (stem == "attention.relative_bias") return first_of_stack(model, part, parameter.layer) >= 0;
  if (parameter.layer >= 0) return part.layers.contains(parameter.layer);
  if (stem == "encoder.final_norm") return part.layers.contains(model.encoder_layers - 1);
  if (is_before_layers(stem))
    return embeddings_in(model, part) > 0 || (part.has_head && stem == "embedding" && model.embeds_at_head());
  return part.has_head;
}

// Behind the matrix they are added to, which is split already.
void add_adapters(std::vector<LocalParameter>& list, std::string_view stem, const TrainingSetup& setup) {
  const LocalParameter base = list.back();
  const bool is_split = setup.tensor_parallel > 1;
  const Split by = split_of(stem);
  const auto add = [&](Parameter shape, bool is_whole_one) {
    list.push_back({.shape = std::move(shape),
                    .adapts = base.shape.name,
                    .is_partial_sum = base.is_partial_sum || (is_split && is_whole_one)});
  };
  add(adapter_a(base.shape, setup.lora_rank), by == Split::rows);
  add(adapter_b(base.shape, setup.lora_rank), by == Split::columns);
}

}  // namespace

namespace {

// Layers of attention of the model's own sizes, a delta rule, Mamba-2 or none of these, then a feed-forward block or
// none.
bool has_alike_parts(const ModelSpec& model) {
  return !model.mamba.is_first() && !model.any_block([](const Block& block) {
    const bool mixes = block.mixer == Mixer::attention || block.mixer == Mixer::delta_rule ||
                       block.mixer == Mixer::mamba || block.mixer == Mixer::none;
    return !mixes || block.keys_as_values || block.shares_keys || block.chooses || block.compression > 0 ||
           block.feed_forward == FeedForward::both || block.value_dim != block.head_dim;
  });
}

}  // namespace

bool has_engine_layers(const ModelSpec& model, const TrainingSetup& setup) {
  const bool goes_round = setup.context_parallel > 1 && setup.context_exchange == ContextExchange::p2p;
  return setup.traits().core && setup.trains_all() && setup.flash_attention && setup.fused_kernels &&
         !model.has_encoder() && !model.reads_images() && model.norm_placement == NormPlacement::pre &&
         model.block_layout == BlockLayout::sequential && !model.wide_query_key_norm && !model.attention_gate &&
         !model.head_gate && model.linear.gate_rank == 0 && !model.linear.fixed_decay &&
         model.activation != Activation::xielu && has_alike_parts(model) && model.norm_weights && model.streams == 1 &&
         model.residual_group == 0 && !model.has_compressed() && model.norms_attention(0) &&
         !(model.query_key_norm && (goes_round || model.positions != Positions::rotary)) &&
         setup.sequence_slices == 1 && setup.zero_stage < 3;
}

bool has_split_loss(const TrainingSetup& setup) {
  return setup.traits().split_loss || (setup.tensor_parallel > 1 && !setup.whole_vocabulary);
}

LossForm loss_in_effect(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.loss == LossForm::chunked || model.reads_images() || model.pretraining_heads || model.masked_lm_head ||
      model.value_head)
    return setup.loss;
  if (has_engine_layers(model, setup)) return setup.loss == LossForm::fused ? LossForm::fused : LossForm::fp32;
  return has_split_loss(setup) ? LossForm::fp32 : setup.loss;
}

bool has_merged_experts(const ModelSpec& model, const TrainingSetup& setup) {
  const bool is_fused = model.activation == Activation::silu_gated || model.activation == Activation::relu_squared;
  return setup.traits().core && is_fused && setup.trains_all();
}

std::vector<LocalParameter> local_parameters(const ModelSpec& model, const TrainingSetup& setup,
                                             const ModelPart& part) {
  std::vector<LocalParameter> result;
  const bool sequence = setup.sequence_parallel && setup.tensor_parallel > 1;
  for (Parameter& parameter : merged_parameters(model, setup)) {
    const std::string stem = stem_of(parameter);
    if (!belongs(parameter, stem, model, part)) continue;
    const bool trains = is_trained(parameter, setup, model), adapted = is_adapted(parameter, setup);
    if (stem == "attention.relative_bias") parameter.layer = first_of_stack(model, part, parameter.layer);
    split(parameter, stem, model, setup);
    if (parameter.experts > 0) {
      parameter.rows /= setup.expert_parallel;
      parameter.experts /= setup.expert_parallel;
    }
    LocalParameter local{.shape = std::move(parameter), .trains = trains};
    if (!trains && is_packed(local.shape, setup)) local.storage = setup.base_weights;
    const bool is_bias = local.shape.name.ends_with(".bias");
    const bool of_heads = is_query_key_norm(stem) || stem == "attention.result_norm";
    const bool of_slopes = stem.ends_with(".slopes");  // of split features
    const bool is_norm = stem.find("norm") != std::string::npos && !of_heads && stem != "mamba.result_norm";
    const bool sees_part = contains(
        {"attention.q_down", "attention.kv_down", "attention.index_q", "attention.index_k", "attention.index_weights",
         "attention.decay_down", "attention.gate_down", "mlp.router", "mlp.shared_gate", "mlp.enter_latent",
         "mlp.leave_latent", "attention.mixture", "mlp.mixture", "output.mixture", "value"},
        stem);
    local.is_partial_sum = sequence && (is_norm || sees_part || (is_bias && split_of(stem) == Split::columns));
    if (of_heads) local.is_partial_sum = setup.tensor_parallel > 1 && !model.wide_query_key_norm;
    if (of_slopes) local.is_partial_sum = setup.tensor_parallel > 1;
    if (stem == "embedding" || stem == "positions") local.uses = embeddings_in(model, part);
    if (stem == "embedding" && model.tied_embeddings && part.has_head) ++local.uses;
    if (part.has_head && (stem == "embedding" || stem == "head")) local.uses += model.mtp_layers;
    if (part.has_head && stem == "embedding" && model.tied_embeddings) local.uses += model.mtp_layers;
    const bool is_copy = trains && setup.has_adapters();
    if (is_copy) result.push_back({.shape = original_of(local.shape), .trains = false});
    result.push_back(std::move(local));
    if (adapted) add_adapters(result, stem, setup);
  }
  return result;
}

}  // namespace spillway::models
