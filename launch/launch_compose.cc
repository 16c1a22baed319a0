#include "launch/launch_compose.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "launch/launch_facts.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/ssdtrain.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::launch {
namespace {

constexpr std::int64_t usual_gpus = 8;  // of torchtitan's run_train.sh
constexpr std::string_view by_layout = "what the layout leaves";

bool is_mixed(const LaunchLedger& ledger) {
  return ledger.chosen("model.precision").value_or("bf16_mixed").ends_with("_mixed");
}

// A whole number chosen for the key.
std::int64_t chosen_number(const LaunchLedger& ledger, std::string_view key, std::int64_t otherwise) {
  return whole_number(ledger.chosen(key).value_or("")).value_or(otherwise);
}

// Whether it says how many GPUs there are, other than by their numbers. Variables for nodes leave it to each node.
bool counts_gpus(const LaunchLedger& ledger) {
  if (ledger.says(facts::gpus) || ledger.says(facts::gpus_per_node)) return true;
  return ledger.says(facts::nodes) && ledger.setting_of(facts::nodes).format != LaunchFormat::environment;
}

// Megatron-Bridge's recipes for a machine are named after their GPUs and their precision:
// "..._256gpu_gb200_fp8mx_config".
void compose_recipe_name(LaunchLedger& ledger) {
  constexpr std::string_view of_gpus = "gpu_";
  const std::string name = ledger.launcher() == LaunchFormat::bridge ? ledger.text(facts::recipe).value_or("") : "";
  const std::size_t gpus = name.find(of_gpus);
  if (gpus == std::string::npos) return;
  const std::size_t count = name.rfind('_', gpus) + 1;
  if (const auto number = whole_number(std::string_view(name).substr(count, gpus - count));
      number && !counts_gpus(ledger))
    ledger.assume(facts::gpus, std::to_string(*number), "the recipe's name");
  if (ledger.says("model.precision")) return;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> recipes = {
      {{"_fp8cs", "tensorwise"}, {"_fp8mx", "mxfp8"}, {"_fp8sc", "blockwise"}, {"_fp8ds", "delayed"}}};
  for (const auto& [word, recipe] : recipes)
    if (name.find(word, gpus) != std::string::npos) {
      ledger.assume(facts::fp8, "fp8_mixed", "the recipe's name");
      ledger.assume(facts::fp8_recipe, std::string(recipe), "the recipe's name");
    }
  if (name.find("_nvfp4", gpus) != std::string::npos) ledger.assume(facts::fp8, "nvfp4_mixed", "the recipe's name");
}

void compose_precision(LaunchLedger& ledger) {
  compose_recipe_name(ledger);
  if (const auto half = ledger.text(facts::half)) ledger.set("model.precision", *half, "");
  const auto fp8 = ledger.text(facts::fp8);
  if (fp8) ledger.set("model.precision", *fp8, "");
  if (fp8 == "fp8_mixed" && ledger.has(facts::fp8_recipe))
    ledger.set("model.fp8_recipe", *ledger.text(facts::fp8_recipe), "");
  else if (ledger.has(facts::fp8_recipe))
    ledger.leave_out(facts::fp8_recipe, IgnoreReason::no_effect, "no product is in fp8");
  else if (fp8 == "fp8_mixed" && ledger.program() == LaunchFormat::torchtitan)
    ledger.set("model.fp8_recipe", "tensorwise", "torchao's default");
  const std::string precision = ledger.chosen("model.precision").value_or("bf16_mixed");
  const bool has_ends = ledger.is_on(facts::bf16_ends) && (precision == "fp8_mixed" || precision == "nvfp4_mixed");
  if (has_ends) {
    ledger.set("model.bf16_layers_first", std::to_string(ledger.number_or(facts::bf16_first, 1)), "");
    ledger.set("model.bf16_layers_last", std::to_string(ledger.number_or(facts::bf16_last, 1)), "");
  } else {
    for (const std::string_view fact : {facts::bf16_ends, facts::bf16_first, facts::bf16_last})
      ledger.leave_out(fact, IgnoreReason::no_effect, "no layer is taken out of fp8, or none is in it");
  }
  const bool has_deepspeed = ledger.has_format(LaunchFormat::deepspeed);
  const bool trains_wide =
      has_deepspeed || ledger.program() == LaunchFormat::torchtitan ||
      ((ledger.has(facts::fsdp) || ledger.has(facts::sharding)) && ledger.number(facts::fsdp_version) != 2);
  if (ledger.dialect() == Dialect::axolotl && precision == "bf16_mixed" && !has_deepspeed &&
      !ledger.has(facts::adapter))
    ledger.set("model.precision", "bf16", "axolotl loads weights in 16 bits and keeps no copy in fp32");
  if (ledger.has(facts::weights_type)) {
    const bool is_mixed = precision.ends_with("_mixed"), in_fp32 = ledger.text(facts::weights_type) == "fp32";
    const bool is_frozen = in_fp32 && is_mixed && ledger.has(facts::adapter);  // LaunchImporter::choose_autocast
    if (is_mixed && !is_frozen && (trains_wide || in_fp32) && ledger.program() != LaunchFormat::torchtitan)
      ledger.leave_out(facts::weights_type, IgnoreReason::as_modelled, "mixed precision keeps weights in fp32 too");
    else if (!is_frozen)
      ledger.set("model.precision", *ledger.text(facts::weights_type), "");
  }
  // ms-swift loads weights in 16 bits; DeepSpeed puts fp32 ones beside them.
  if (ledger.launcher() == LaunchFormat::swift && ledger.has_format(LaunchFormat::deepspeed) && precision == "bf16")
    ledger.set("model.precision", "bf16_mixed", "DeepSpeed keeps fp32 weights beside those of the checkpoint");
  if (!ledger.has(facts::tf32)) return;
  if (precision == "fp32")
    ledger.set("model.precision", "tf32", "");
  else
    ledger.leave_out(facts::tf32, IgnoreReason::no_effect, "products are in 16 bits anyway");
}

// In PyTorch's words: expandable segments are an allocator of their own here.
void compose_allocator(LaunchLedger& ledger) {
  const auto settings = ledger.text(facts::allocator_settings);
  if (!settings) return;
  std::string rest;
  bool expandable = false;
  for (std::size_t at = 0; at < settings->size();) {
    const std::size_t end = std::min(settings->find(',', at), settings->size());
    const std::string part = settings->substr(at, end - at);
    at = end + 1;
    if (part == "expandable_segments:True")
      expandable = true;
    else if (part != "expandable_segments:False")
      rest.append(rest.empty() ? "" : ",").append(part);
  }
  if (expandable) ledger.set("memory.allocator", std::string(expandable_policy), "PYTORCH_CUDA_ALLOC_CONF");
  if (!rest.empty()) ledger.set("memory.config", rest, "");
}

void compose_attention(LaunchLedger& ledger) {
  const auto backend = ledger.text(facts::attention_backend);
  if (!backend) return;
  ledger.set("model.flash_attention", *backend == "none" ? "false" : "true", "");
  if (*backend != "none") ledger.set("model.attention_kernel", *backend, "the attention's backend");
}

constexpr const char* by_groups = "layers are recomputed by groups, of which one input stays: lowers memory";

// Of some layers alone, and inputs that leave for host memory.
void compose_recompute(LaunchLedger& ledger) {
  if (const auto word = ledger.text(facts::checkpointing)) {
    const bool leaves = *word == "offloaded";
    ledger.set("model.recompute", leaves ? "full" : *word, "its default");
    if (leaves) ledger.set("offload.technique", "checkpoints", "the layers' inputs are kept in host memory");
  }
  const bool is_full = ledger.chosen("model.recompute") == "full";
  auto where = ledger.text(facts::offload_inputs);
  if (!where && ledger.says("model.recompute")) {
    const std::string& said = ledger.setting_of("model.recompute").value;
    if (said == "offload" || said == "unsloth") where = "host";
    if (said == "offload_disk") where = "drive";
  }
  if (where)
    ledger.set("offload.technique", std::string(is_full ? planners::checkpoints_word : planners::ssdtrain_word),
               "activations leave the GPU");
  if (ledger.chosen("offload.technique"))
    ledger.set("offload.tier", where.value_or("host"), "activations leave the GPU");
  const std::int64_t count = ledger.number_or(facts::recompute_count, 1);
  if (is_full && ledger.text(facts::recompute_method) == "block") {
    ledger.set("model.recompute_layers", std::to_string(count), "");
  } else if (is_full && count > 1) {
    ledger.leave_out(facts::recompute_count, IgnoreReason::not_said, by_groups);
  } else {
    const auto kind = is_full ? IgnoreReason::as_modelled : IgnoreReason::no_effect;
    const std::string reason = is_full ? "layer by layer" : "whole layers are not recomputed";
    for (const std::string_view fact : {facts::recompute_method, facts::recompute_count})
      ledger.leave_out(fact, kind, reason);
  }
  const auto every = ledger.number(facts::recompute_every);
  if (!every) return;
  if (is_full && *every > 1)
    ledger.leave_out(facts::recompute_every, IgnoreReason::not_said, by_groups);
  else
    ledger.leave_out(facts::recompute_every, IgnoreReason::as_modelled, "layer by layer");
}

// Megatron-LM's scopes; without one whole layers are captured.
void compose_graphs(LaunchLedger& ledger) {
  const auto scope = ledger.text(facts::graph_scope);
  const auto implementation = ledger.text(facts::graphs);
  if (implementation == models::whole_iteration) {
    ledger.leave_out(facts::graph_scope, IgnoreReason::no_effect, "all is captured");
    return ledger.set("model.cuda_graphs", *implementation, "");
  }
  if (implementation.value_or(scope == models::whole_iteration ? "local" : "false") == "false") {
    ledger.leave_out(facts::graphs, IgnoreReason::as_modelled, "nothing is captured");
    return ledger.leave_out(facts::graph_scope, IgnoreReason::no_effect, "nothing is captured");
  }
  std::string words;
  for (const std::string& word : listed_words(scope.value_or("full"))) {
    if (word == "full" || models::is_graph_scope(word))
      words += (words.empty() ? "" : ",") + (word == "full" ? std::string("attn,mamba,mlp") : word);
    else
      ledger.warn("graphs of '" + word + "' are left out: model.cuda_graphs has no such part");
  }
  if (!words.empty()) ledger.set("model.cuda_graphs", words, "whole layers");
}

// Megatron-core's three kinds, and who carries what is flexible; and what runs beside them.
void compose_dispatcher(LaunchLedger& ledger) {
  if (ledger.launcher() == LaunchFormat::megatron && ledger.says(facts::experts))
    for (const char* fusion : {"model.router_fusion", "model.permute_fusion"})
      ledger.assume(fusion, "false", "Megatron-LM's default");
  if (ledger.is_on("model.overlap_experts"))
    ledger.doubt("model.overlap_experts", IgnoreReason::adds, "activations of two micro-batches lie side by side");
  const auto kind = ledger.text(facts::dispatcher);
  if (kind == "flex")
    return ledger.set("model.expert_dispatcher", ledger.text(facts::flex_backend).value_or("deepep"),
                      "Megatron-core's default backend");
  ledger.leave_out(facts::flex_backend, IgnoreReason::no_effect, "of the dispatcher flex");
  if (kind)
    ledger.leave_out(facts::dispatcher, kind == "nccl" ? IgnoreReason::as_modelled : IgnoreReason::not_said,
                     "tokens travel by all-to-all");
}

// What Liger's apply_liger_kernel_to_*() puts in by itself (linkedin/Liger-Kernel, transformers/monkey_patch.py).
void compose_liger(LaunchLedger& ledger) {
  const auto loss = ledger.text(facts::liger);
  if (!loss) return;
  if (!ledger.says("model.loss")) ledger.set("model.loss", *loss, "Liger's default");
  for (const char* key : {"model.fused_norms", "model.fused_rotary", "model.fused_gate"})
    if (!ledger.says(key)) ledger.set(key, "true", "Liger's default");
}

void compose_plugins(LaunchLedger& ledger) {
  const auto plugins = ledger.text(facts::plugins);
  if (!plugins) return;
  if (plugins->find("CutCrossEntropy") != std::string::npos) return ledger.set("model.loss", "chunked", "a plugin");
  const bool is_liger = plugins->find("Liger") != std::string::npos;
  ledger.leave_out(facts::plugins, is_liger ? IgnoreReason::no_effect : IgnoreReason::not_said,
                   is_liger ? "its switches say which of its kernels run" : "not modelled");
}

// Of gradients projected to a narrow space: "rank=64, update_proj_gap=100", or a key of LLaMA-Factory's.
void compose_projection(LaunchLedger& ledger, std::string_view optimizer) {
  if (!optimizer.starts_with("galore") && !optimizer.starts_with("apollo"))
    return ledger.leave_out(facts::optimizer_args, IgnoreReason::no_effect, "values of the update");
  const std::string args = ledger.text(facts::optimizer_args).value_or("");
  constexpr std::string_view key = "rank=";
  if (const std::size_t at = args.find(key); at != std::string::npos)
    ledger.set("model.optimizer_rank",
               args.substr(at + key.size(), args.find_first_not_of("0123456789", at + key.size()) - at - key.size()),
               "");
  else if (ledger.says(facts::optimizer) && ledger.setting_of(facts::optimizer).name.starts_with("use_") &&
           !ledger.has("model.optimizer_rank"))
    ledger.set("model.optimizer_rank", "16", "LLaMA-Factory's default");
}

// BAdam's block: everything in 16 bits but what one layer needs to be updated.
void compose_block(LaunchLedger& ledger) {
  if (!ledger.says(facts::block)) return;
  if (ledger.text(facts::block) != "1") return;
  ledger.set("model.trained_layers", "1", "");
  ledger.set("model.precision", "bf16_mixed", "the block's master weights are in fp32");
  ledger.set("model.fp32_gradients", "true", "the block's gradients are in fp32");
}

// Names that say both the optimizer and how its update runs.
void compose_optimizer(LaunchLedger& ledger) {
  compose_block(ledger);
  compose_projection(ledger, ledger.text(facts::optimizer).value_or(""));
  if (const auto both = ledger.text(facts::optimizer)) {
    const std::size_t slash = both->find('/');
    ledger.set("model.optimizer", both->substr(0, slash), "");
    ledger.set("model.optimizer_form", both->substr(slash + 1), "by the optimizer's name");
    if (ledger.says(facts::optimizer) && ledger.setting_of(facts::optimizer).value.starts_with("paged_"))
      ledger.doubt(facts::optimizer, IgnoreReason::saves, "its states may leave for host memory");
  } else if (ledger.says("model.optimizer")) {
    const LaunchSetting& said = ledger.setting_of("model.optimizer");
    if (said.format == LaunchFormat::deepspeed) ledger.set("model.optimizer_form", "fused", "DeepSpeed's fused Adam");
    if (said.value == "dist_muon") ledger.set("model.zero_stage", "1", "dist_muon keeps whole matrices by rank");
  }
}

// TrainingArguments' fsdp: words such as "full_shard auto_wrap offload".
void compose_fsdp_words(LaunchLedger& ledger) {
  const auto words = ledger.text(facts::sharding);
  if (!words || words->size() <= 1 || *words == "hybrid" || *words == "hybrid2") return;
  const auto has = [&](std::string_view word) { return words->find(word) != std::string::npos; };
  const bool is_off = *words != "true" && (!has("shard") || has("no_shard"));
  const bool is_second = *words == "true" || ledger.number(facts::fsdp_version) == 2;
  const std::string by_words = has("grad_op") || has("zero2") ? "2" : "3";
  const std::string stage = is_off ? "0" : is_second ? ledger.text(facts::reshard).value_or(by_words) : by_words;
  if (!is_second) ledger.leave_out(facts::reshard, IgnoreReason::no_effect, "of FSDP 2");
  if (has("offload")) ledger.assume(facts::offload_everything, "true", "fsdp: offload");
  ledger.set("model.zero_stage", stage, "");
}

void check_degrees(const LaunchLedger& ledger) {
  for (const std::string_view fact :
       {std::string_view("model.tensor_parallel"), std::string_view("model.context_parallel"),
        std::string_view("model.pipeline_parallel"), facts::replicas}) {
    const std::int64_t degree = ledger.number_or(fact, 1);
    if (degree >= 1) continue;
    const LaunchSetting& setting = ledger.setting_of(fact);
    throw InputError(setting.file, setting.place + " (" + setting.shown + ")",
                     fmt::format("GPUs can't be split into {} parts", degree), "give 1 or more");
  }
}

std::int64_t divisor_of(const LaunchLedger& ledger) {
  return times(times(ledger.number_or("model.tensor_parallel", 1), ledger.number_or("model.context_parallel", 1)),
               ledger.number_or("model.pipeline_parallel", 1));
}

// GPUs as the launch counts them; 0: it doesn't.
std::int64_t gpus_of(const LaunchLedger& ledger) {
  if (const auto all = ledger.number(facts::gpus)) return *all;
  if (!counts_gpus(ledger)) {
    const auto visible = ledger.text(facts::visible_gpus);
    return visible ? times(ledger.number_or(facts::nodes, 1), std::ssize(listed_words(*visible))) : 0;
  }
  return times(ledger.number_or(facts::nodes, 1), ledger.number_or(facts::gpus_per_node, 1));
}

[[noreturn]] void refuse_gpus(const LaunchLedger& ledger, std::int64_t gpus, std::int64_t parts) {
  for (const std::string_view fact : {facts::gpus, facts::gpus_per_node, facts::nodes, facts::visible_gpus}) {
    if (!ledger.says(fact)) continue;
    const LaunchSetting& setting = ledger.setting_of(fact);
    throw InputError(setting.file, setting.place + " (" + setting.shown + ")",
                     fmt::format("{} GPUs are no multiple of the layout's {}", gpus, parts),
                     "correct one of them, or give the variables that say them by --env");
  }
  throw InputError("", "", fmt::format("{} GPUs are no multiple of the layout's {}", gpus, parts),
                   "let tensor x context x pipeline parallel divide them");
}

// parts >= 1: check_degrees().
std::int64_t replicas_of(LaunchLedger& ledger, std::int64_t machine_gpus, std::int64_t parts) {
  std::int64_t gpus = gpus_of(ledger);
  if (gpus == 0) gpus = machine_gpus > 0 && machine_gpus % parts == 0 ? machine_gpus : parts;
  if (gpus < 1 || gpus % parts != 0) refuse_gpus(ledger, gpus, parts);
  return gpus / parts;
}

// Of DeepSpeed's three sizes of a batch the launch may say all, and thereby the replicas.
std::optional<std::int64_t> replicas_by_batches(const LaunchLedger& ledger) {
  const auto all = ledger.number("model.global_batch"), each = ledger.number("model.micro_batch"),
             several = ledger.number("model.gradient_accumulation");
  if (gpus_of(ledger) > 0 || !all || !each || !several || *each < 1 || *several < 1) return std::nullopt;
  const std::int64_t at_once = times(*each, *several);
  return *all % at_once == 0 && *all >= at_once ? std::optional(*all / at_once) : std::nullopt;
}

void compose_replicas(LaunchLedger& ledger, std::int64_t machine_gpus) {
  if (const auto replicas = replicas_by_batches(ledger))
    return ledger.set("model.data_parallel", std::to_string(*replicas),
                      "the batch over micro-batches and accumulation");
  const bool has_mesh = ledger.says(facts::replicas) || ledger.says(facts::shards);
  // axolotl's ranks of experts have batches of their own: expert_parallel_size x dp_shard_size (x cp) is the world.
  const std::int64_t by_experts = ledger.dialect() == Dialect::axolotl
                                      ? std::max<std::int64_t>(1, ledger.number_or("model.expert_parallel", 1))
                                      : 1;
  const std::int64_t mesh =
      times(times(ledger.number_or(facts::replicas, 1), ledger.number_or(facts::shards, 1)), by_experts);
  const std::int64_t replicas = has_mesh ? mesh : replicas_of(ledger, machine_gpus, divisor_of(ledger));
  ledger.set("model.data_parallel", std::to_string(replicas),
             gpus_of(ledger) > 0 ? by_layout : "the launch doesn't say how many GPUs there are");
}

void compose_titan_replicas(LaunchLedger& ledger, std::int64_t machine_gpus) {
  const std::int64_t replicas = ledger.number_or(facts::replicas, 1);
  std::int64_t shards = ledger.number_or(facts::shards, -1);
  if (shards < 1) {
    shards = replicas_of(ledger, machine_gpus > 0 ? machine_gpus : usual_gpus, times(divisor_of(ledger), replicas));
    if (gpus_of(ledger) == 0)
      ledger.warn(fmt::format("how many GPUs shard is what is left over: {} are assumed", shards));
  }
  ledger.set("model.data_parallel", std::to_string(times(replicas, shards)), by_layout);
  const bool is_sharded = shards > 1 || ledger.number_or("model.context_parallel", 1) > 1;
  const bool has_stages = ledger.number_or("model.pipeline_parallel", 1) > 1;
  const std::string stage = ledger.text(facts::reshard).value_or(has_stages ? "2" : "3");
  if (is_sharded)
    ledger.set("model.zero_stage", stage, "sharded: torchtitan's default is to keep weights in a pipeline alone");
  else
    ledger.leave_out(facts::reshard, IgnoreReason::no_effect, "nothing is sharded");
  if (replicas > 1 && is_sharded)
    ledger.set("model.shard_groups", std::to_string(replicas), "copies of what is sharded");
  if (ledger.number_or("model.tensor_parallel", 1) > 1)
    ledger.set("model.sequence_parallel", "true", "torchtitan's tensor parallelism splits norms along the sequence");
}

void compose_sharding(LaunchLedger& ledger) {
  if (ledger.text(facts::fsdp2) == "3") ledger.set("model.zero_stage", ledger.text(facts::reshard).value_or("3"), "");
  const bool is_axolotls = ledger.dialect() == Dialect::axolotl && ledger.says_any("fsdp_config.");
  if (!is_axolotls)
    ledger.leave_out(facts::fsdp_version, IgnoreReason::no_effect, "which sharding is on other settings say");
  if (!ledger.has(facts::fsdp) && !ledger.has(facts::sharding) && !is_axolotls) return;
  const auto sharding = ledger.text(facts::sharding);
  if (sharding && sharding->size() > 1 && !sharding->starts_with("hybrid")) return;  // words, read before
  if (ledger.program() == LaunchFormat::megatron && !ledger.has(facts::fsdp))
    return ledger.leave_out(facts::sharding, IgnoreReason::no_effect, "of --use-megatron-fsdp");
  ledger.leave_out("model.zero_stage", IgnoreReason::no_effect, "of DeepSpeed, not of FSDP");
  const std::string usual =
      ledger.program() == LaunchFormat::megatron ? "0" : ledger.text(facts::reshard).value_or("3");
  const std::string words = sharding.value_or(usual);
  const bool has_degrees = ledger.launcher() == LaunchFormat::automodel && words == "3";
  const std::string stage = words == "hybrid"    ? "3"
                            : words == "hybrid2" ? "2"
                            : has_degrees        ? ledger.text(facts::reshard).value_or(words)
                                                 : words;
  ledger.set("model.zero_stage", stage, "FSDP's default");
}

// FSDP's hybrid sharding keeps what is shared out within a machine; MiCS says how many GPUs share.
void compose_groups(LaunchLedger& ledger, std::int64_t machine_gpus) {
  const std::int64_t stage = whole_number(ledger.chosen("model.zero_stage").value_or("0")).value_or(0);
  if (const std::int64_t copies = ledger.number_or(facts::replicas, 1); stage > 0 && copies > 1)
    return ledger.set("model.shard_groups", std::to_string(copies), "copies of what is sharded");
  const bool is_hybrid = ledger.text(facts::sharding).value_or("").find("hybrid") != std::string::npos ||
                         ledger.text(facts::reshard).value_or("") == "hybrid";
  std::int64_t size = ledger.number_or(facts::shard_size, 0);
  if (is_hybrid) {
    const std::int64_t nodes = ledger.number_or(facts::nodes, 0);
    const std::int64_t of_launch = nodes > 0 ? gpus_of(ledger) / nodes : 0;
    size = of_launch > 0 ? of_launch : machine_gpus > 0 ? machine_gpus : usual_gpus;
    size = ledger.number_or(facts::gpus_per_node, size) / ledger.number_or("model.tensor_parallel", 1);
  }
  const std::int64_t replicas = whole_number(ledger.chosen("model.data_parallel").value_or("1")).value_or(1);
  if (stage == 0 || size < 1 || size >= replicas)
    return ledger.leave_out(facts::shard_size, IgnoreReason::no_effect, "all replicas share out a copy, or none");
  if (size == 1 || replicas % size != 0)
    return ledger.warn(
        fmt::format("{} GPUs can't share {} replicas: weights are assumed to be split over all", size, replicas));
  ledger.set("model.shard_groups", std::to_string(replicas / size),
             is_hybrid ? "each machine shares out a copy" : "replicas over the GPUs that share");
}

// What only some stages have.
void compose_state(LaunchLedger& ledger) {
  const std::int64_t stage = whole_number(ledger.chosen("model.zero_stage").value_or("0")).value_or(0);
  if (ledger.is_on(facts::offload_everything)) {
    ledger.set("model.optimizer_device", "cpu", "state is offloaded");
    if (stage == 3) ledger.set("model.weight_device", "cpu", "weights are offloaded along with their state");
  }
  if (stage != 3)
    ledger.leave_out(facts::whole_save, IgnoreReason::no_effect, "weights aren't shared out");
  else if (const auto saving = ledger.text(facts::whole_save))
    ledger.set("model.saving", *saving, "");
  const bool on_gpu = ledger.chosen("model.optimizer_device").value_or("gpu") == "gpu";
  if (on_gpu) {
    ledger.leave_out("model.host_threads", IgnoreReason::no_effect, "the optimizer is on the GPU");
  } else {
    ledger.leave_out("model.master_remainders", IgnoreReason::no_effect,
                     "master weights are with the optimizer, which is not on the GPU");
    const bool is_torchrun = ledger.says(facts::gpus_per_node) &&
                             ledger.setting_of(facts::gpus_per_node).name.find("nproc") != std::string::npos;
    const bool is_several = chosen_number(ledger, "model.data_parallel", 1) > 1;
    const std::string optimizer = ledger.chosen("model.optimizer").value_or("adamw");
    if (optimizer != "adamw" && optimizer != "adam" && optimizer != "muon") {
      for (const std::string_view fact : {facts::optimizer, std::string_view("model.optimizer")})
        if (ledger.says(fact)) ledger.doubt(fact, IgnoreReason::saves, "on the CPU its states are counted as AdamW's");
      ledger.set("model.optimizer", "adamw", "on the CPU states are AdamW's at most");
    }
    if (is_several &&
        (is_torchrun || ledger.has_format(LaunchFormat::accelerate) || ledger.dialect() == Dialect::factory ||
         ledger.dialect() == Dialect::factory_v1 || ledger.launcher() == LaunchFormat::swift))
      ledger.assume("model.host_threads", "1", "torchrun and accelerate give each process one thread");
  }
  if (ledger.chosen("model.weight_device").value_or("gpu") != "gpu" && (stage != 3 || on_gpu))
    ledger.leave_out("model.weight_device", IgnoreReason::not_said,
                     "weights leave the GPU under stage 3 with the optimizer on the CPU only");
  if (stage < 2) ledger.leave_out("model.late_reduction", IgnoreReason::no_effect, "gradients are not sharded");
  const bool is_narrow = is_mixed(ledger) || ledger.chosen("model.precision") == "bf16";
  if (stage < 2 || !is_narrow)
    ledger.leave_out(facts::reduce_type, IgnoreReason::no_effect, "gradients are not sharded in 16 bits");
  else if (const auto wide = ledger.text(facts::reduce_type))
    ledger.set("model.fp32_reduction", *wide, "gradients are reduced in fp32");
  if (!is_mixed(ledger))
    ledger.leave_out("model.fp32_gradients", IgnoreReason::as_modelled, "they are as wide as weights");
  if (stage < 3) ledger.leave_out("model.late_prefetch", IgnoreReason::no_effect, "of stage 3");
}

// A kernel that never keeps all logits wants each row's whole vocabulary, which tensor ranks share.
void compose_loss(LaunchLedger& ledger) {
  const std::string loss = ledger.chosen("model.loss").value_or("fp32");
  if ((loss != "chunked" && loss != "sliced") || chosen_number(ledger, "model.tensor_parallel", 1) == 1) return;
  ledger.set("model.loss", "fused", "tensor ranks share the vocabulary: no chunks of whole rows");
  ledger.warn("model.loss: chunks of the logits are not modelled under tensor parallelism; all logits are counted");
}

// What a launcher does by itself once it is known how many GPUs there are.
void compose_by_launcher(LaunchLedger& ledger) {
  const std::int64_t replicas = chosen_number(ledger, "model.data_parallel", 1);
  if (ledger.launcher() == LaunchFormat::swift && !ledger.has("model.gradient_accumulation") &&
      !ledger.has("model.global_batch")) {
    const std::int64_t at_once =
        std::max<std::int64_t>(times(chosen_number(ledger, "model.micro_batch", 1), replicas), 1);
    ledger.set("model.gradient_accumulation", std::to_string(15 / at_once + 1),
               "ms-swift's default: as many as make a batch of 16");
  }
  if (ledger.launcher() == LaunchFormat::swift_megatron && ledger.number_or("model.expert_parallel", 1) > 1 &&
      ledger.chosen("model.sequence_parallel") == "true")
    ledger.assume("model.expert_tensor_parallel", "1", "ms-swift's default");
  if (ledger.dialect() == Dialect::factory_v1 && ledger.text(facts::fsdp2) == "3")
    ledger.assume(facts::reduce_type, "true", "LLaMA-Factory reduces gradients in fp32");
  if (ledger.launcher() == LaunchFormat::automodel) {
    const bool is_megatrons = ledger.text(facts::sharding) == "3";
    ledger.assume(facts::reduce_type, is_megatrons ? "false" : "true",
                  is_megatrons ? "Megatron-FSDP's default" : "AutoModel's default: gradients are reduced in fp32");
    if (!is_megatrons) ledger.assume("model.late_reduction", "true", "AutoModel's default: defer_fsdp_grad_sync");
  }
  if (ledger.launcher() == LaunchFormat::litgpt && replicas > 1)
    ledger.assume("model.recompute", "full", "LitGPT's FSDP recomputes blocks");
}

void compose_buckets(LaunchLedger& ledger) {
  if (const auto mib = ledger.number(facts::bucket_mib))
    ledger.set("model.bucket_bytes", std::to_string(*mib << 20), "");
  const std::int64_t stage = whole_number(ledger.chosen("model.zero_stage").value_or("0")).value_or(0);
  if (ledger.has_format(LaunchFormat::deepspeed) && stage < 3)  // stage 3: a layer at a time, which is less
    ledger.assume(facts::bucket_elements, std::to_string(deepspeed_bucket()), "DeepSpeed's default");
  const auto elements = ledger.number(facts::bucket_elements);
  if (!elements) return;
  const bool is_megatrons =
      ledger.says(facts::bucket_elements) && ledger.setting_of(facts::bucket_elements).format == LaunchFormat::megatron;
  const bool is_wide = is_megatrons
                           ? ledger.chosen("model.main_gradients") != "bf16"
                           : ledger.chosen("model.precision") == "fp32" || ledger.chosen("model.precision") == "tf32";
  ledger.set("model.bucket_bytes", std::to_string(*elements * (is_wide ? 4 : 2)), "DeepSpeed's default");
}

void compose_pipeline(LaunchLedger& ledger, std::int64_t layers) {
  const std::int64_t stages = ledger.number_or("model.pipeline_parallel", 1);
  if (stages < 2) {
    for (const std::string_view fact :
         {std::string_view("model.pipeline_schedule"), std::string_view("model.pipeline_chunks"),
          facts::layers_per_chunk, facts::pass_batch})
      ledger.leave_out(fact, IgnoreReason::no_effect, "there is one stage");
    return;
  }
  const auto per_chunk = ledger.number(facts::layers_per_chunk);
  if (!per_chunk || *per_chunk < 1) return;
  const std::int64_t chunks = (layers - 1) / times(stages, *per_chunk) + 1;
  ledger.set("model.pipeline_chunks", std::to_string(std::max<std::int64_t>(chunks, 1)), "");
}

// Since 2026 torchtitan counts tokens of packed sequences.
void compose_titan_tokens(LaunchLedger& ledger) {
  const std::int64_t sequence = std::max<std::int64_t>(chosen_number(ledger, "model.sequence", 2048), 1);
  const std::int64_t tokens = ledger.number_or(facts::pass_tokens, 16'384);
  const std::int64_t micro = std::max<std::int64_t>((tokens - 1) / sequence + 1, 1);
  ledger.set("model.micro_batch", std::to_string(micro), "16,384 tokens, torchtitan's default");
  if (tokens % sequence != 0)
    ledger.warn(fmt::format("{} tokens are no whole sequences of {}: {} are assumed", tokens, sequence, micro));
  const std::int64_t all = ledger.number_or(facts::step_tokens, -1);
  if (all > 0) return ledger.set("model.global_batch", std::to_string(all / sequence), "");
  ledger.leave_out(facts::step_tokens, IgnoreReason::as_modelled, "-1: one micro-batch");
}

// A replica's sequences at once: one micro-batch, or through a pipeline several.
void compose_titan_batches(LaunchLedger& ledger) {
  if (ledger.has(facts::recipe)) return compose_titan_tokens(ledger);
  const std::int64_t local = ledger.number_or(facts::local_batch, 8);
  const bool has_stages = ledger.number_or("model.pipeline_parallel", 1) > 1;
  const std::int64_t micro = has_stages ? ledger.number_or(facts::pass_batch, 1) : local;
  const std::int64_t replicas = whole_number(ledger.chosen("model.data_parallel").value_or("1")).value_or(1);
  ledger.set("model.micro_batch", std::to_string(micro),
             has_stages ? "torchtitan's default in a pipeline" : "torchtitan's default");
  const std::int64_t global = ledger.number_or("model.global_batch", -1);
  if (global < 1) {
    ledger.leave_out("model.global_batch", IgnoreReason::as_modelled, "-1: local_batch_size x replicas");
    ledger.set("model.global_batch", std::to_string(times(local, replicas)), "local_batch_size x replicas");
  } else if (has_stages && global != times(local, replicas)) {
    ledger.warn("micro-batches of several passes through the pipeline are counted as one pass");
  }
}

// LLaMA-Factory's freeze: the last layers are trained, and nothing in front of the layers or behind them.
void compose_frozen_layers(LaunchLedger& ledger, std::int64_t layers) {
  if (ledger.text(facts::adapter) != "factory_freeze")
    return ledger.leave_out(facts::trained_layers, IgnoreReason::no_effect, "of finetuning_type freeze");
  const std::int64_t trained = ledger.number_or(facts::trained_layers, 2);
  const std::int64_t count = std::min(layers, std::abs(trained));
  ledger.set("model.frozen_layers", std::to_string(trained < 0 ? 0 : layers - count),
             "LLaMA-Factory's default: the last two layers are trained");
  ledger.set("model.trained_layers", std::to_string(count), "neither embeddings nor head");
}

void leave_evaluation_out(LaunchLedger& ledger, IgnoreReason kind, const std::string& reason) {
  for (const std::string_view fact :
       {std::string_view("model.evaluate_every"), facts::eval_when, facts::eval_iterations,
        std::string_view("model.evaluation_micro_batch"), std::string_view("model.evaluation_flush")})
    ledger.leave_out(fact, kind, reason);
}

void compose_megatron_evaluation(LaunchLedger& ledger) {
  if (!ledger.says("model.evaluate_every") && !ledger.says(facts::eval_iterations)) return;
  const std::int64_t every = ledger.number_or("model.evaluate_every", 1000),
                     iterations = ledger.number_or(facts::eval_iterations, 100);
  if (every < 1 || iterations < 1)
    return leave_evaluation_out(ledger, IgnoreReason::no_effect, "there is no evaluation");
  const auto chosen = [&](const char* key, std::int64_t otherwise) {
    return whole_number(ledger.chosen(key).value_or("")).value_or(otherwise);
  };
  const std::int64_t at_once =
      std::max<std::int64_t>(1, times(chosen("model.micro_batch", 1), chosen("model.data_parallel", 1)));
  const std::int64_t batches = std::max<std::int64_t>(1, chosen("model.global_batch", at_once) / at_once);
  ledger.set("model.evaluate_every", std::to_string(every), "Megatron-LM's default");
  ledger.set("model.evaluation_batches", std::to_string(std::min(most_micro_batches, times(iterations, batches))),
             "global batches of as many micro-batches as a step has");
}

void compose_evaluation(LaunchLedger& ledger) {
  if (ledger.program() == LaunchFormat::megatron) return compose_megatron_evaluation(ledger);
  const auto when = ledger.text(facts::eval_when);
  if (when != "steps" && when != "epoch")
    return leave_evaluation_out(ledger, IgnoreReason::no_effect, "there is no evaluation between steps");
  if (when == "epoch") ledger.doubt(facts::eval_when, IgnoreReason::time, "how many steps an epoch has the data say");
  const bool is_titan = ledger.program() == LaunchFormat::torchtitan;
  ledger.set("model.evaluate_every", std::to_string(ledger.number_or("model.evaluate_every", is_titan ? 10 : 500)),
             "the default");
  ledger.set("model.evaluation_micro_batch", std::to_string(ledger.number_or("model.evaluation_micro_batch", 8)),
             "the default");
  const std::int64_t batches = ledger.number_or(facts::eval_iterations, -1);
  if (batches < 1) ledger.warn("how many batches an evaluation has the data say: one is assumed");
  ledger.set("model.evaluation_batches", std::to_string(std::max<std::int64_t>(1, batches)), "by the data");
}

}  // namespace

// The Trainer's sizes of what DeepSpeed's file leaves "auto": transformers' integrations/deepspeed.py,
// trainer_config_finalize.
void compose_deepspeed(LaunchLedger& ledger, std::int64_t hidden) {
  const bool has_leaves = ledger.text(facts::leaf_classes).value_or("[]").size() > 2;
  if (!ledger.has_format(LaunchFormat::deepspeed)) return;
  const auto framework = ledger.chosen("model.framework");
  const bool is_split = divisor_of(ledger) > ledger.number_or("model.context_parallel", 1) ||
                        ledger.number_or("model.expert_parallel", 1) > 1;
  if (is_split || (framework && !framework->starts_with("huggingface"))) return;
  ledger.set("model.framework", "deepspeed", "transformers' modules under DeepSpeed");
  const std::string stage = ledger.chosen("model.zero_stage").value_or("0");
  const std::int64_t square = times(hidden, hidden);
  if (ledger.is_left_open("model.bucket_bytes") && stage != "0")
    ledger.set("model.bucket_bytes", std::to_string(times(square, ledger.chosen("model.precision") == "fp32" ? 4 : 2)),
               "auto: gradients of the hidden size squared");
  if (stage != "3") return;
  if (ledger.is_left_open("model.prefetch_elements"))
    ledger.set("model.prefetch_elements", std::to_string(times(square, 9) / 10),
               "auto: 0.9 of the hidden size squared");
  if (!ledger.says("model.overlap_gradients")) ledger.set("model.overlap_gradients", "true", "stage 3's default");
  if (has_leaves) ledger.set("model.leaf_modules", "true", "");
}

std::int64_t deepspeed_bucket() {
  const TrainingSetup setup{.zero_stage = 1};
  return default_bucket_bytes(setup) / setup.gradient_bytes();
}

void compose_kernels(LaunchLedger& ledger) {
  compose_precision(ledger);
  compose_recompute(ledger);
  compose_attention(ledger);
  compose_graphs(ledger);
  compose_optimizer(ledger);
  compose_dispatcher(ledger);
  compose_plugins(ledger);
  compose_liger(ledger);
  compose_allocator(ledger);
}

void compose_layout(LaunchLedger& ledger, const MachineGpus& machines) {
  check_degrees(ledger);
  const bool is_alone = ledger.launcher() == LaunchFormat::torchtune && ledger.script().ends_with("single_device");
  if (is_alone) ledger.assume(facts::gpus, "1", "its recipe is of a single device");
  if (counts_gpus(ledger))
    ledger.leave_out(facts::visible_gpus, IgnoreReason::overridden, "the launch says how many GPUs there are");
  if (ledger.program() == LaunchFormat::torchtitan)
    compose_titan_replicas(ledger, machines.all);
  else if (!ledger.says("model.data_parallel"))
    compose_replicas(ledger, machines.all);
  compose_by_launcher(ledger);
  compose_fsdp_words(ledger);
  if (ledger.program() != LaunchFormat::torchtitan) {
    compose_sharding(ledger);
    compose_groups(ledger, machines.each);
  }
  compose_state(ledger);
  compose_buckets(ledger);
  compose_loss(ledger);
}

void compose_batches(LaunchLedger& ledger, std::int64_t layers) {
  compose_pipeline(ledger, layers);
  compose_frozen_layers(ledger, layers);
  if (const auto packed = ledger.number(facts::packed)) ledger.set("model.sequence", std::to_string(*packed), "");
  if (const auto cut = ledger.number(facts::tokenizer_length); cut && !ledger.says("model.sequence"))
    ledger.set("model.sequence", std::to_string(*cut), "what its tokenizer cuts texts to");
  if (const auto pass = ledger.number(facts::pass_batch); pass && ledger.launcher() == LaunchFormat::automodel)
    ledger.set("model.micro_batch", std::to_string(*pass), "");
  if (ledger.program() == LaunchFormat::torchtitan) compose_titan_batches(ledger);
  compose_preference(ledger);
  compose_evaluation(ledger);
}

bool may_autocast(TrainingSetup setup, const ModelSpec& spec) {
  setup.autocast = true;
  try {
    static_cast<void>(resolve(setup, spec));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace spillway::launch
