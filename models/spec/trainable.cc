#include "models/spec/trainable.h"

#include <algorithm>
#include <string_view>

#include "base/input_error.h"
#include "models/spec/tower.h"

namespace spillway::models {
namespace {

constexpr std::int64_t scaled_block = 64, second_block = 256, fp8_block = 128;

std::int64_t blocks_of(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

bool is_layer_matrix(const Parameter& parameter) {
  const std::string_view name = parameter.name;
  return parameter.layer >= 0 && parameter.columns > 1 && name.ends_with(".weight") &&
         !name.ends_with("relative_bias.weight") && !name.ends_with("convolution.weight") &&
         !name.ends_with("convolution.filter.weight") && !name.ends_with("out_groups.weight") &&
         parameter.component != Component::norm;
}

bool is_output_projection(std::string_view name) {
  return name.ends_with("attention.out.weight") || name.ends_with("mamba.out.weight") ||
         name.ends_with("convolution.out.weight");
}

Parameter adapter(const Parameter& base, const char* suffix, std::int64_t rows, std::int64_t columns) {
  constexpr std::string_view weight = ".weight";
  Parameter result = base;
  result.name = base.name.substr(0, base.name.size() - weight.size()) + suffix + std::string(weight);
  result.rows = rows * std::max<std::int64_t>(1, base.experts);
  result.columns = columns;
  return result;
}

bool is_saved(const Parameter& parameter, const TrainingSetup& setup) {
  const SavedModules saved = setup.modules_to_save;
  if (!setup.has_adapters() || saved == SavedModules::none) return false;
  if (parameter.name == "embedding.weight") return saved != SavedModules::head;
  return (parameter.name == "head.weight" || parameter.name == "head.bias") && saved != SavedModules::embedding;
}

// Per layer that is not frozen, in front of everything or behind everything.
bool has_backward(const Parameter& parameter, const TrainingSetup& setup) {
  return parameter.layer < 0 || parameter.layer >= setup.frozen_layers || trains_tower(setup);
}

}  // namespace

StoredWeight stored_weight(BaseWeights weights, const Parameter& parameter) {
  const std::int64_t n = parameter.elements();
  switch (weights) {
    case BaseWeights::nf4:
      return {.packed_bytes = blocks_of(n, 2), .scales = blocks_of(n, scaled_block)};
    case BaseWeights::nf4_double: {
      const std::int64_t scales = blocks_of(n, scaled_block);
      return {.packed_bytes = blocks_of(n, 2),
              .scales = scales,
              .scale_bytes = 1,
              .second_scales = blocks_of(scales, second_block)};
    }
    case BaseWeights::int8:
      return {.packed_bytes = n, .scales = parameter.rows};
    case BaseWeights::fp8: {  // experts' matrices have blocks of their own
      const std::int64_t experts = std::max<std::int64_t>(1, parameter.experts);
      return {
          .packed_bytes = n,
          .scales = experts * blocks_of(parameter.rows / experts, fp8_block) * blocks_of(parameter.columns, fp8_block)};
    }
    case BaseWeights::same:
      break;
  }
  SPILLWAY_ASSERT(false);
  return {};
}

bool is_trained(const Parameter& parameter, const TrainingSetup& setup, const ModelSpec& model) {
  if (model.is_tower())
    return setup.train_tower == TrainTower::whole ||
           (setup.train_tower == TrainTower::projector && parameter.name.starts_with("projector"));
  if (setup.has_adapters()) return is_saved(parameter, setup);
  if (setup.trained_layers > 0)
    return parameter.layer >= setup.frozen_layers && parameter.layer < setup.frozen_layers + setup.trained_layers;
  if (setup.frozen_layers == 0) return true;
  if (parameter.layer >= 0) return parameter.layer >= setup.frozen_layers;
  if (parameter.name.starts_with("encoder.")) return setup.frozen_layers <= model.encoder_layers;
  return parameter.component != Component::embedding && !parameter.name.starts_with("embedding_norm");
}

bool is_adapted(const Parameter& parameter, const TrainingSetup& setup) {
  if (!setup.has_adapters() || parameter.layer < setup.frozen_layers || !is_layer_matrix(parameter)) return false;
  const std::string_view name = parameter.name;
  const bool of_attention = parameter.component == Component::attention;
  const bool of_mlp = (parameter.component == Component::mlp || parameter.component == Component::experts) &&
                      !name.ends_with("shared_gate.weight");
  switch (setup.lora_targets) {
    case LoraTargets::attention:
      return of_attention;
    case LoraTargets::qkv:
      return of_attention && !is_output_projection(name);
    case LoraTargets::mlp:
      return of_mlp;
    case LoraTargets::all_linear:
      return of_attention || of_mlp;
  }
  return false;
}

bool is_packed(const Parameter& parameter, const TrainingSetup& setup) {
  return setup.base_weights != BaseWeights::same && is_layer_matrix(parameter);
}

Parameter adapter_a(const Parameter& base, std::int64_t rank) { return adapter(base, ".lora_a", rank, base.columns); }

Parameter adapter_b(const Parameter& base, std::int64_t rank) {
  return adapter(base, ".lora_b", base.rows / std::max<std::int64_t>(1, base.experts), rank);
}

Parameter original_of(const Parameter& copy) {
  Parameter original = copy;
  original.name.insert(original.name.rfind('.'), ".original");
  return original;
}

TrainableCounts trainable_counts(const ModelSpec& model, const TrainingSetup& setup) {
  TrainableCounts counts;
  for (const Parameter& parameter : parameters(model)) {
    counts.all += parameter.elements();
    const bool trains = is_trained(parameter, setup, model);
    if (trains) counts.trained += parameter.elements();
    if (trains && setup.has_adapters()) counts.all += original_of(parameter).elements();
    if (!is_adapted(parameter, setup)) continue;
    const std::int64_t added =
        adapter_a(parameter, setup.lora_rank).elements() + adapter_b(parameter, setup.lora_rank).elements();
    counts.all += added;
    counts.trained += added;
  }
  if (setup.images == 0) return counts;
  for (const Parameter& parameter : parameters(*model.tower)) {
    counts.all += parameter.elements();
    if (is_trained(parameter, setup, *model.tower)) counts.trained += parameter.elements();
  }
  return counts;
}

double product_flops_per_token(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.trains_all()) return 6.0 * static_cast<double>(matmul_parameter_count(model));
  std::int64_t passes = 0;  // products of a weight with a token
  const auto add = [&](const Parameter& parameter, std::int64_t times) {
    passes += times * matmul_elements(model, parameter);
  };
  for (const Parameter& parameter : parameters(model)) {
    add(parameter, 1 + (has_backward(parameter, setup) ? 1 : 0) + (is_trained(parameter, setup, model) ? 1 : 0));
    if (!is_adapted(parameter, setup)) continue;
    add(adapter_a(parameter, setup.lora_rank), 3);
    add(adapter_b(parameter, setup.lora_rank), 3);
  }
  if (model.tied_embeddings && !model.reads_images()) passes += 2 * model.vocabulary * model.embedding_columns();
  return 2.0 * static_cast<double>(passes);
}

}  // namespace spillway::models
