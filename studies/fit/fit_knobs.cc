#include "studies/fit/fit_knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "models/spec/expert_setup.h"
#include "models/spec/training_setup_fields.h"

namespace spillway::studies {
namespace {

using Setup = TrainingSetup;

struct Key {
  KeyRole role = KeyRole::question;
  std::vector<std::string_view> values{};  // of a knob that is a word or a number; empty: a flag, or near_by()
  bool (*has_effect)(const Setup& setup) = nullptr;  // null: anywhere
};

bool shares(const Setup& s) { return s.data_parallel * s.context_parallel > 1; }
bool shares_gradients(const Setup& s) { return shares(s) && s.zero_stage >= 2; }
bool gathers(const Setup& s) { return shares(s) && s.zero_stage == 3; }
bool updates_by_group(const Setup& s) { return gathers(s) && s.traits().deepspeed; }
bool splits_tensors(const Setup& s) { return s.tensor_parallel > 1; }
bool spreads_experts(const Setup& s) { return s.expert_parallel > 1; }
// Of the Trainer, a flag of which puts the kernels in.
bool may_take_liger(const Setup& s) { return s.framework == Framework::huggingface && !s.compile && !s.fused_kernels; }
bool may_overlap_experts(const Setup& s) { return s.gradient_accumulation > 1 && !overlap_clash(s); }
bool recomputes_layers(const Setup& s) { return s.recompute == Recompute::full; }
bool has_token_loss(const Setup& s) { return !s.compares_answers(); }
bool is_core(const Setup& s) { return s.traits().core; }

const std::map<std::string_view, Key>& keys() {
  using enum KeyRole;
  static const std::map<std::string_view, Key> all = {
      {"micro_batch", {layout}},
      {"sequence", {question}},
      {"gradient_accumulation", {question}},
      {"precision", {numerics}},
      {"fp32_gradients", {numerics}},
      {"optimizer", {numerics}},
      {"optimizer_form", {knob, {"fused"}}},
      {"optimizer_rank", {question}},
      {"reference", {question}},
      {"rollout_memory", {question}},
      {"rollout_sleep", {question}},
      {"rollout_parallel", {question}},
      {"rollout_group", {question}},
      {"value_model", {question}},
      {"loading", {question}},
      {"saving", {question}},
      {"value_micro_batch", {question}},
      {"reward_model", {question}},
      {"prompt_tokens", {question}},
      {"trainable", {question}},
      {"lora_rank", {question}},
      {"lora_targets", {question}},
      {"modules_to_save", {question}},
      {"lora_weights", {numerics}},
      {"lora_dropout", {question}},
      {"base_weights", {numerics}},
      {"keeps_packed_inputs", {question}},
      {"fp32_unpacked", {question}},
      {"frozen_layers", {question}},
      {"trained_layers", {question}},
      {"mtp_layers", {question}},
      {"images", {question}},
      {"image_tokens", {question}},
      {"train_tower", {question}},
      {"main_gradients", {numerics}},
      {"moments", {numerics}},
      {"fp8_weights", {numerics}},
      {"fp8_recipe", {numerics}},
      {"bf16_layers_first", {numerics}},
      {"bf16_layers_last", {numerics}},
      {"master_remainders", {knob, {}, is_core}},
      {"recompute", {knob, {"none", "selective", "full", "operators"}}},
      {"recompute_modules", {question}},
      {"recompute_layers", {knob, {}, recomputes_layers}},
      {"recompute_every", {knob, {"1", "2", "3", "4"}, recomputes_layers}},
      {"flash_attention", {knob, {"true"}}},
      {"document_tokens", {question}},
      {"attention_kernel", {knob, {"best"}}},
      {"fused_kernels", {knob, {"true"}}},
      {"fused_rotary", {knob, {"true"}, may_take_liger}},
      {"fused_norms", {knob, {"true"}, may_take_liger}},
      {"fused_gate", {knob, {"true"}, may_take_liger}},
      {"compile", {question}},
      {"autocast", {question}},
      {"loss", {knob, {"fused", "chunked"}, has_token_loss}},
      {"holds_logits", {question}},
      {"loss_metrics", {question}},
      {"dropout", {question}},
      {"framework", {question}},
      {"global_batch", {question}},
      {"tensor_parallel", {layout}},
      {"sequence_parallel", {knob, {}, splits_tensors}},
      {"context_parallel", {layout}},
      {"context_exchange", {knob, {"p2p", "a2a", "all_gather"}, [](const Setup& s) { return s.context_parallel > 1; }}},
      {"pipeline_parallel", {layout}},
      {"pipeline_chunks", {layout}},
      {"pipeline_schedule", {layout}},
      {"sequence_slices", {layout}},
      {"recomputed_chunks", {layout}},
      {"split_backward", {layout}},
      {"offloaded_states", {layout}},
      {"step_barrier", {question}},
      {"pipeline_split", {question}},
      {"stage_layers", {question}},
      {"data_parallel", {layout}},
      {"expert_parallel", {layout}},
      {"expert_tensor_parallel", {layout}},
      {"expert_dispatcher", {knob, {"nccl", "deepep", "hybridep"}, spreads_experts}},
      {"expert_imbalance", {question}},
      {"expert_load", {question}},
      {"expert_load_cv", {question}},
      {"expert_load_seed", {question}},
      {"expert_load_steps", {question}},
      {"expert_capacity", {question}},
      {"overlap_experts", {knob, {}, may_overlap_experts}},
      {"static_experts", {question}},
      {"fused_experts", {knob, {}, is_core}},
      {"router_fusion", {knob, {"true"}, is_core}},
      {"permute_fusion", {knob, {"true"}, is_core}},
      {"overlap_shared_experts", {knob, {"true"}, spreads_experts}},
      {"cuda_graphs", {knob, {"full_iteration"}, is_core}},
      {"graph_pool", {question}},
      {"launch_blocking", {question}},
      {"overlap_tensor", {knob, {}, splits_tensors}},
      {"whole_vocabulary", {knob, {"false"}, splits_tensors}},
      {"zero_stage", {knob, {"0", "1", "2", "3"}, shares}},
      {"shard_groups", {layout}},
      {"bucket_bytes", {knob, {"0", "100000000", "400000000"}, shares}},
      {"prefetch", {knob, {"1", "2", "3"}, gathers}},
      {"sub_group", {knob, {"100000000"}, updates_by_group}},
      {"prefetch_elements", {knob, {"0"}, updates_by_group}},
      {"leaf_modules", {knob, {}, updates_by_group}},
      {"late_prefetch", {knob, {}, gathers}},
      {"fp32_reduction", {numerics}},
      {"late_reduction", {knob, {}, shares_gradients}},
      {"overlap_gradients", {knob, {}, shares}},
      {"phase_timers", {question}},
      {"optimizer_device", {layout}},
      {"weight_device", {layout}},
      {"delayed_update", {numerics}},
      {"host_threads", {question}},
      {"evaluate_every", {question}},
      {"evaluation_batches", {question}},
      {"evaluation_micro_batch", {question}},
      {"evaluation_keeps", {question}},
      {"evaluation_flush", {question}},
  };
  return all;
}

// Recomputed layers: fewer are faster, more hold less.
std::vector<std::string> near_by(std::int64_t now, std::int64_t most) {
  std::vector<std::string> values;
  for (const std::int64_t each : {now - 1, now - 2, now - 4, now / 2, now + 1, now + 2, now + 4})
    if (each > 0 && each < most && each != now) values.push_back(std::to_string(each));
  return values;
}

std::vector<std::string> values_of(std::string_view key, const Key& row, const TrainingSetup& setup,
                                   std::int64_t layers) {
  const std::string now = field_text(setup, key);
  if (key == "recompute_layers") {
    const std::int64_t most = layers / setup.pipeline_parallel / setup.pipeline_chunks;
    return near_by(setup.recompute_layers == 0 ? most : setup.recompute_layers, most);
  }
  if (row.values.empty()) return {now == "true" ? "false" : "true"};
  return {row.values.begin(), row.values.end()};
}

}  // namespace

KeyRole role_of(std::string_view key) {
  const auto found = keys().find(key);
  SPILLWAY_ASSERT(found != keys().end());
  return found->second.role;
}

std::vector<std::string> knob_settings(const TrainingSetup& setup, std::int64_t layers) {
  std::vector<std::string> settings;
  for (const std::string& key : training_setup_keys()) {
    const Key& row = keys().at(key);
    if (row.role != KeyRole::knob || (row.has_effect != nullptr && !row.has_effect(setup))) continue;
    for (const std::string& value : values_of(key, row, setup, layers))
      if (value != field_text(setup, key)) settings.push_back(fmt::format("model.{}={}", key, value));
  }
  return settings;
}

}  // namespace spillway::studies
