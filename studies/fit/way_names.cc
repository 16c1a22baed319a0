#include "studies/fit/way_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "models/pipeline/named_schedules.h"
#include "models/spec/pipeline_setup.h"

namespace spillway::studies {
namespace {

std::string optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
      return "Adam";
    case OptimizerKind::adamw_8bit:
    case OptimizerKind::torchao_8bit:
      return "8-bit Adam";
    case OptimizerKind::torchao_4bit:
      return "4-bit Adam";
    case OptimizerKind::galore_adamw:
      return "GaLore";
    case OptimizerKind::apollo_adamw:
      return "APOLLO";
    case OptimizerKind::lomo:
      return "LOMO";
    case OptimizerKind::adalomo:
      return "AdaLomo";
    case OptimizerKind::adafactor:
      return "Adafactor";
    case OptimizerKind::muon:
      return "Muon";
    case OptimizerKind::sgd:
    case OptimizerKind::sgd_momentum:
      return "SGD";
  }
  return std::string(to_string(kind));
}

std::string precision_name(TrainingPrecision precision) {
  return precision == TrainingPrecision::bf16          ? "all in bf16"
         : precision == TrainingPrecision::fp8_mixed   ? "products in fp8"
         : precision == TrainingPrecision::nvfp4_mixed ? "products in NVFP4"
                                                       : std::string(to_string(precision));
}

std::string where(StateDevice device) {
  return device == StateDevice::cpu ? "on the CPU" : device == StateDevice::drives ? "on SSD" : "on the GPU";
}

// How a set-up spreads the model over GPUs.
std::vector<std::string> layout_words(const TrainingSetup& setup) {
  std::vector<std::string> splits;
  const auto count = [&splits](const char* what, std::int64_t value) {
    if (value > 1) splits.push_back(fmt::format("{} {}", what, value));
  };
  count("tensor parallel", setup.tensor_parallel);
  count("context parallel", setup.context_parallel);
  count("pipeline", setup.pipeline_parallel);
  if (setup.pipeline_parallel > 1 && (setup.pipeline_schedule != default_schedule || setup.pipeline_chunks > 1)) {
    std::string how = schedule_name(setup);
    if (setup.pipeline_chunks > 2) how += fmt::format(", {} chunks", setup.pipeline_chunks);
    if (setup.recomputed_chunks > 0) how += fmt::format(", {} recomputed", setup.recomputed_chunks);
    splits.back() += " (" + how + ")";
  }
  count("expert parallel", setup.expert_parallel);
  std::vector<std::string> words;
  if (splits.empty()) count("data parallel", setup.data_parallel);
  if (!splits.empty()) words.push_back(fmt::format("{}", fmt::join(splits, " x ")));
  if (setup.shared_stage() > 0) words.push_back(fmt::format("ZeRO-{}", setup.zero_stage));
  if (setup.shared_stage() > 0 && setup.shard_groups > 1)
    words.back() += fmt::format(" in {} groups", setup.shard_groups);
  return words;
}

// Where weights and optimizer states are, and what updates them.
std::vector<std::string> state_words(const TrainingSetup& setup, const TrainingSetup& given) {
  std::vector<std::string> words;
  const bool says_optimizer = setup.optimizer_device != StateDevice::gpu || given.optimizer_device != StateDevice::gpu;
  const bool says_weights = setup.weight_device != StateDevice::gpu || given.weight_device != StateDevice::gpu;
  const std::string optimizer = optimizer_name(setup.optimizer);
  if (says_optimizer && says_weights && setup.optimizer_device == setup.weight_device)
    words.push_back(fmt::format("weights and {} {}", optimizer, where(setup.weight_device)));
  else if (says_optimizer && says_weights)
    words.push_back(
        fmt::format("weights {}, {} {}", where(setup.weight_device), optimizer, where(setup.optimizer_device)));
  else if (says_optimizer)
    words.push_back(optimizer + " " + where(setup.optimizer_device));
  else if (says_weights)
    words.push_back("weights " + where(setup.weight_device));
  else if (setup.optimizer != given.optimizer)
    words.push_back(optimizer);
  if (setup.delayed_update) words.emplace_back("optimizer one step late");
  if (setup.offloaded_states > 0)
    words.push_back(fmt::format("states of {} chunks in host memory", setup.offloaded_states));
  return words;
}

std::vector<std::string> other_words(const TrainingSetup& setup, const TrainingSetup& given) {
  std::vector<std::string> words;
  if (setup.recompute != Recompute::none) words.push_back(recomputed_words(setup));
  if (setup.recompute == Recompute::none && given.recompute != Recompute::none) words.emplace_back("recompute nothing");
  if (setup.micro_batch != given.micro_batch) {
    const std::int64_t at_once = std::max<std::int64_t>(1, setup.micro_batch * setup.data_parallel);
    words.push_back(fmt::format("micro-batch {} x accumulate {}", setup.micro_batch,
                                std::max<std::int64_t>(1, setup.step_sequences() / at_once)));
  }
  if (setup.precision != given.precision) words.push_back(precision_name(setup.precision));
  if (setup.loss != given.loss)
    words.push_back(setup.loss == LossForm::chunked ? "loss in chunks" : std::string(to_string(setup.loss)) + " loss");
  if (setup.optimizer_form != given.optimizer_form)
    words.push_back(fmt::format("{} {}", to_string(setup.optimizer_form), optimizer_name(setup.optimizer)));
  if (setup.tensor_parallel > 1 && !setup.sequence_parallel) words.emplace_back("no sequence parallelism");
  if (setup.prefetch != given.prefetch) words.push_back(fmt::format("prefetch {}", setup.prefetch));
  return words;
}

// Of choices that are one word or flag in a scenario.
std::optional<std::string_view> words_of(std::string_view setting) {
  static const std::map<std::string_view, std::string_view> words = {
      {"attention_kernel=best", "fastest attention kernel"},
      {"context_exchange=a2a", "context exchanged by all-to-all"},
      {"context_exchange=all_gather", "context exchanged by all-gather"},
      {"context_exchange=p2p", "context exchanged in a ring"},
      {"cuda_graphs=full_iteration", "CUDA graphs"},
      {"expert_dispatcher=deepep", "tokens by DeepEP"},
      {"expert_dispatcher=hybridep", "tokens by HybridEP"},
      {"expert_dispatcher=nccl", "tokens by all-to-all"},
      {"late_prefetch=false", "next weights gathered early"},
      {"late_prefetch=true", "next weights gathered late"},
      {"late_reduction=false", "gradients reduced in each micro-batch"},
      {"late_reduction=true", "gradients reduced once a step"},
      {"master_remainders=true", "master weights as 16-bit remainders"},
      {"overlap_experts=false", "experts' exchange not overlapped"},
      {"overlap_experts=true", "experts' exchange overlapped"},
      {"overlap_gradients=false", "gradients reduced after the backward"},
      {"overlap_gradients=true", "gradients reduced in the backward"},
      {"overlap_shared_experts=true", "shared experts overlapped"},
      {"overlap_tensor=false", "tensor collectives not overlapped"},
      {"overlap_tensor=true", "tensor collectives overlapped"},
      {"permute_fusion=true", "fused permutation"},
      {"router_fusion=true", "fused router"},
      {"whole_vocabulary=false", "vocabulary split"}};
  const auto found = words.find(setting);
  return found == words.end() ? std::nullopt : std::optional(found->second);
}

// What the words above and the batch say nothing of, as it is set.
std::vector<std::string> untold_words(const std::vector<std::string>& settings) {
  static const std::set<std::string_view> told = {"tensor_parallel",
                                                  "context_parallel",
                                                  "pipeline_parallel",
                                                  "data_parallel",
                                                  "expert_parallel",
                                                  "zero_stage",
                                                  "shard_groups",
                                                  "micro_batch",
                                                  "pipeline_schedule",
                                                  "pipeline_chunks",
                                                  "recomputed_chunks",
                                                  "recompute",
                                                  "recompute_layers",
                                                  "recompute_every",
                                                  "optimizer_device",
                                                  "weight_device",
                                                  "delayed_update",
                                                  "offloaded_states",
                                                  "optimizer",
                                                  "precision",
                                                  "loss",
                                                  "optimizer_form",
                                                  "fp32_reduction",  // of a framework, not of a choice
                                                  "sequence_parallel",
                                                  "prefetch",
                                                  "global_batch",
                                                  "gradient_accumulation"};
  constexpr std::string_view model = "model.";
  std::vector<std::string> words;
  for (const std::string& setting : settings) {
    if (!setting.starts_with(model)) continue;
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(model.size(), equals - model.size());
    const std::string text = setting.substr(equals + 1);
    if (told.contains(key)) continue;
    if (const auto known = words_of(std::string_view(setting).substr(model.size()))) {
      words.emplace_back(*known);
      continue;
    }
    words.push_back(text == "true" ? key : text == "false" ? "no " + key : fmt::format("{} {}", key, text));
    std::replace(words.back().begin(), words.back().end(), '_', ' ');
  }
  return words;
}

}  // namespace

std::string recomputed_words(const TrainingSetup& setup) {
  constexpr std::array<std::string_view, 3> ordinals = {"second", "third", "fourth"};
  if (setup.recompute == Recompute::operators) return "recompute cheap operators";
  if (setup.recompute == Recompute::selective) return "recompute attention";
  if (setup.recompute_layers > 0)
    return fmt::format("recompute {} layer{}{}", setup.recompute_layers, setup.recompute_layers == 1 ? "" : "s",
                       setup.pipeline_parallel > 1 ? " a stage" : "");
  if (setup.recompute_every > 1 && setup.recompute_every < 5)
    return fmt::format("recompute every {} layer", ordinals[static_cast<std::size_t>(setup.recompute_every - 2)]);
  if (setup.recompute_every > 1) return fmt::format("recompute one layer in {}", setup.recompute_every);
  return "recompute whole layers";
}

std::string capitalized(std::string text) {
  if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string way_name(const TrainingSetup& setup, const TrainingSetup& given, const std::vector<std::string>& settings,
                     const std::vector<std::string>& moved) {
  std::vector<std::string> words = layout_words(setup);
  for (const std::vector<std::string>& more :
       {state_words(setup, given), other_words(setup, given), moved, untold_words(settings)})
    words.insert(words.end(), more.begin(), more.end());
  return capitalized(fmt::format("{}", fmt::join(words, ", ")));
}

}  // namespace spillway::studies
