#include "launch/launch_decompose.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "launch/launch_compose.h"
#include "launch/launch_facts.h"
#include "launch/launch_model.h"
#include "models/pipeline/named_schedules.h"
#include "models/spec/model_alias.h"
#include "models/spec/pipeline_setup.h"
#include "models/spec/training_setup_fields.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::launch {
namespace {

class Decomposer {
 public:
  Decomposer(const Scenario& scenario, const TrainingSetup& setup, const ModelSpec& spec, LaunchFormat format)
      : scenario_(scenario), setup_(setup), spec_(spec), format_(format) {
    for (const std::string& key : training_setup_keys()) made_.facts["model." + key] = field_text(setup, key);
    // 0: as the program chooses, which is no flag.
    if (setup.expert_tensor_parallel == 0) drop("expert_tensor_parallel");
    if (setup.optimizer_device == StateDevice::gpu) drop("host_threads");
  }

  ScenarioFacts take(std::int64_t gpus_per_node) {
    gpus(gpus_per_node);
    batches();
    precision();
    autocast();
    recomputation();
    sharding();
    attention();
    pipeline();
    buckets();
    allocator();
    model();
    dropout();
    evaluation();
    compiled();
    if (is(LaunchFormat::megatron)) {
      experts();
      graphs();
    }
    if (is(LaunchFormat::hf)) {
      huggingface_optimizer();
      liger();
    }
    adapters();
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is(LaunchFormat format) const { return format_ == format; }
  [[nodiscard]] std::string text(std::string_view key) const { return made_.facts.at("model." + std::string(key)); }
  void say(std::string_view fact, std::string value) { made_.facts[std::string(fact)] = std::move(value); }
  void say(std::string_view fact, std::int64_t value) { say(fact, std::to_string(value)); }
  void settle(std::string_view key) { made_.settled.insert("model." + std::string(key)); }
  // Facts of a key that is said by others, or not at all.
  void drop(std::string_view key) { made_.facts.erase("model." + std::string(key)); }
  void lack(std::string_view key, std::string reason, std::optional<std::string> otherwise = std::nullopt) {
    const std::string path = "model." + std::string(key);
    const std::string value = key == "name" ? scenario_.model : field_text(setup_, key);
    made_.unsaid.push_back({path, value, std::move(reason), std::move(otherwise)});
    made_.settled.insert(path);
    made_.facts.erase(path);
  }

  void gpus(std::int64_t per_node) {
    settle("data_parallel");
    if (is(LaunchFormat::torchtitan)) return;
    std::int64_t all = setup_.gpus();
    if (is(LaunchFormat::hf)) all = setup_.tensor_parallel * setup_.data_parallel;  // what else splits has no flag
    if (per_node < 1 || all % per_node != 0) per_node = all < 8 || all % 8 != 0 ? all : 8;
    say(facts::gpus, all);
    say(facts::nodes, all / per_node);
    say(facts::gpus_per_node, per_node);
  }

  void batches() {
    say("model.global_batch", setup_.step_sequences());
    settle("gradient_accumulation");
    if (is(LaunchFormat::megatron)) drop("gradient_accumulation");
    if (is(LaunchFormat::hf)) {
      drop("global_batch");
      settle("global_batch");
    }
    if (!is(LaunchFormat::torchtitan)) return;
    settle("micro_batch");
    const bool has_stages = setup_.pipeline_parallel > 1;
    say(facts::local_batch, setup_.micro_batch * (has_stages ? setup_.gradient_accumulation : 1));
    if (has_stages) say(facts::pass_batch, setup_.micro_batch);
  }

  void precision() {
    if (has_narrow_products(setup_.precision) && (is(LaunchFormat::torchtitan) || is(LaunchFormat::megatron))) {
      say(facts::fp8, to_text(setup_.precision));
      say("model.precision", to_text(TrainingPrecision::bf16_mixed));
    }
    if (setup_.precision == TrainingPrecision::fp8_mixed) fp8_recipe();
    if (setup_.bf16_layers_first + setup_.bf16_layers_last > 0) bf16_ends();
    if (setup_.precision == TrainingPrecision::nvfp4_mixed && is(LaunchFormat::torchtitan))
      lack("precision", "torchtitan has no products in NVFP4");
    const bool has_type = is(LaunchFormat::torchtitan) || (is(LaunchFormat::hf) && setup_.zero_stage < 2);
    if (setup_.precision == TrainingPrecision::bf16 && has_type) {
      say(facts::weights_type, to_text(TrainingPrecision::bf16));
      say("model.precision", to_text(TrainingPrecision::bf16_mixed));
    }
    if (setup_.precision == TrainingPrecision::fp16_mixed && is(LaunchFormat::hf)) {
      say(facts::half, to_text(TrainingPrecision::fp16_mixed));
      settle("precision");
      drop("precision");
    }
    if (setup_.precision == TrainingPrecision::tf32 && is(LaunchFormat::hf)) {
      say(facts::tf32, to_text(TrainingPrecision::tf32));
      settle("precision");
    }
  }
  // Mixed precision of the Trainer is torch.autocast where nothing is sharded, said or not; frozen weights have the
  // type that they are loaded in.
  void autocast() {
    if (!is(LaunchFormat::hf) || !may_autocast(setup_, spec_) || (setup_.has_adapters() && !setup_.autocast)) return;
    if (setup_.has_adapters()) say(facts::weights_type, to_text(TrainingPrecision::fp32));
    if (setup_.autocast)
      settle("autocast");
    else
      lack("autocast", "the Trainer's mixed precision casts fp32 weights where they are used", "true");
  }
  // Megatron-LM wants a method and a count beside full.
  void recomputation() {
    if (!is(LaunchFormat::megatron) || text("recompute") != "full") return;
    say(facts::recompute_method, setup_.recompute_layers > 0 ? "block" : "uniform");
    say(facts::recompute_count, std::max<std::int64_t>(setup_.recompute_layers, 1));
    settle("recompute_layers");
  }
  void bf16_ends() {
    for (const char* key : {"bf16_layers_first", "bf16_layers_last"}) settle(key);
    if (!is(LaunchFormat::megatron)) return lack("bf16_layers_first", "all layers' products are in fp8 or none");
    say(facts::bf16_ends, "true");
    say(facts::bf16_first, setup_.bf16_layers_first);
    say(facts::bf16_last, setup_.bf16_layers_last);
  }
  void fp8_recipe() {
    const bool is_known = is(LaunchFormat::torchtitan)
                              ? setup_.fp8_recipe == Fp8Recipe::tensorwise || setup_.fp8_recipe == Fp8Recipe::rowwise
                              : is(LaunchFormat::megatron);
    settle("fp8_recipe");
    if (is_known)
      say(facts::fp8_recipe, std::string(fp8_recipe_words()[setup_.fp8_recipe].name));
    else if (is(LaunchFormat::torchtitan))
      lack("fp8_recipe", "torchao's scales are of tensors or rows");
    else if (setup_.fp8_recipe != Fp8Recipe::delayed)
      lack("fp8_recipe", "scales are those of a recipe's own settings");
  }

  static std::string to_text(TrainingPrecision precision) { return std::string(to_string(precision)); }

  void sharding() {
    const std::int64_t stage = setup_.zero_stage;
    if (is(LaunchFormat::megatron) && stage > 1) {
      say(facts::fsdp, "3");
      say(facts::sharding, stage);
    }
    if (is(LaunchFormat::hf)) huggingface_sharding();
    if (is(LaunchFormat::torchtitan)) titan_sharding();
    if (is(LaunchFormat::deepspeed) && stage == 3) deepspeed_sharding();
  }

  void deepspeed_sharding() {
    if (setup_.shard_groups > 1) {
      settle("shard_groups");
      say(facts::shard_size, setup_.data_parallel / setup_.shard_groups);
    }
    if (setup_.saving == Saving::first) {
      settle("saving");
      say(facts::whole_save, "first");
    }
  }

  void huggingface_sharding() {
    const std::int64_t stage = setup_.zero_stage;
    settle("zero_stage");
    if (stage < 3 && setup_.late_prefetch) lack("late_prefetch", "of FSDP's full sharding");
    if (setup_.shard_groups > 1) lack("shard_groups", "FSDP's hybrid sharding goes by machines");
    if (stage > 1) {
      say(facts::fsdp, "3");
      say(facts::sharding, stage);
      if (setup_.optimizer_device == StateDevice::cpu && (stage == 2 || setup_.weight_device == StateDevice::cpu)) {
        say(facts::offload_everything, "true");
        settle("optimizer_device");
        settle("weight_device");
      }
    } else if (stage == 1) {
      lack("zero_stage", "FSDP splits gradients as well; DeepSpeed has stage 1");
    }
  }

  void huggingface_optimizer() {
    const std::string both = fmt::format("{}/{}", text("optimizer"), text("optimizer_form"));
    if (their_value(*find_flag(LaunchFormat::hf, "optim"), both)) {
      say(facts::optimizer, both);
      settle("optimizer");
      settle("optimizer_form");
    } else {
      lack("optimizer", "TrainingArguments has no such optimizer");
      lack("optimizer_form", "nor one that updates so");
    }
  }

  // A switch for all; which of its kernels run is LaunchExport's liger_kernel_config.
  void liger() {
    const bool has_kernels = setup_.fused_norms || setup_.fused_rotary || setup_.fused_gate ||
                             setup_.loss == LossForm::chunked || (setup_.loss == LossForm::fused && !setup_.compile);
    const bool is_known =
        spec_.norm == NormKind::rms_norm && spec_.positions == Positions::rotary &&
        (setup_.loss == LossForm::chunked || setup_.loss == LossForm::fused || setup_.loss == LossForm::fp32);
    if (!has_kernels || !is_known) return;
    say(facts::liger, "chunked");
    for (const char* key : {"loss", "fused_norms", "fused_rotary", "fused_gate"}) settle(key);
  }

  // In trl's words, the other way round than compose_adapters().
  void adapters() {
    if (!is(LaunchFormat::hf)) return;
    if (!setup_.has_adapters()) {
      for (const char* key :
           {"lora_rank", "lora_dropout", "lora_targets", "lora_weights", "modules_to_save", "base_weights"}) {
        settle(key);
        drop(key);
      }
      return;
    }
    say(facts::adapter, "peft");
    settle("trainable");
    const bool is_qlora = setup_.trainable == Trainable::qlora;
    const bool is_double =
        setup_.base_weights == BaseWeights::nf4_double || (is_qlora && setup_.base_weights == BaseWeights::same);
    settle("base_weights");
    if (is_double || setup_.base_weights == BaseWeights::nf4) {
      say(facts::base_bits, 4);
      say(facts::double_quant, is_double ? "true" : "false");
    } else if (setup_.base_weights == BaseWeights::int8) {
      say(facts::base_bits, 8);
    } else if (setup_.base_weights == BaseWeights::fp8) {
      lack("base_weights", "weights are in fp8 where the model's checkpoint is; name one that is");
    }
    settle("modules_to_save");
    if (setup_.modules_to_save != SavedModules::none)
      lack("modules_to_save", "trl takes its modules by names of their own; give --lora_modules_to_save");
    settle("lora_targets");
    if (const auto modules = adapter_modules())
      say(facts::adapter_modules, *modules);
    else
      lack("lora_targets", "its modules have names of their own; give --lora_target_modules");
  }

  // Names that PEFT finds its layers by; nothing where transformers' models of this shape have various ones.
  [[nodiscard]] std::optional<std::string> adapter_modules() const {
    if (setup_.lora_targets == LoraTargets::all_linear) return std::string(facts::all_modules);
    const bool is_llama = spec_.positions == Positions::rotary && spec_.activation == Activation::silu_gated &&
                          spec_.encoder_layers == 0 && spec_.latent.kv_rank == 0 && spec_.linear.key_heads == 0 &&
                          spec_.blocks.empty();
    if (!is_llama) return std::nullopt;
    if (setup_.lora_targets == LoraTargets::qkv) return std::string(facts::qkv_modules);
    if (setup_.lora_targets == LoraTargets::attention)
      return fmt::format("{} {}", facts::qkv_modules, facts::output_module);
    if (spec_.experts.count > 0) return std::nullopt;
    return std::string(facts::mlp_modules);
  }

  void titan_sharding() {
    const std::int64_t ranks = setup_.data_parallel * setup_.context_parallel;
    const std::int64_t stage = setup_.zero_stage;
    const std::string by_itself = setup_.pipeline_parallel > 1 ? "2" : "3";
    settle("zero_stage");
    if (ranks > 1 && stage == 0 && setup_.context_parallel > 1)
      lack("zero_stage", "torchtitan splits weights over context-parallel ranks", by_itself);
    if (ranks == 1 && stage > 0) lack("zero_stage", "one rank splits nothing");
    if (ranks > 1 && stage == 1) lack("zero_stage", "torchtitan splits weights as well, or nothing", by_itself);
    const bool splits = stage > 0 && setup_.data_parallel > 1;
    const std::int64_t copies = splits ? setup_.shard_groups : setup_.data_parallel;
    say(facts::replicas, copies);
    say(facts::shards, setup_.data_parallel / copies);
    settle("shard_groups");
    if (stage > 1 && ranks > 1) say(facts::reshard, stage);
    const bool is_narrow = is_mixed(setup_.precision) || setup_.precision == TrainingPrecision::bf16;
    const bool reduces = stage > 0 && ranks > 1 && is_narrow;
    if (reduces && setup_.fp32_reduction) {
      say(facts::reduce_type, "true");
      settle("fp32_reduction");
    } else if (reduces) {
      lack("fp32_reduction", "torchtitan reduces gradients in fp32", "true");
    }
    const bool offloads =
        setup_.optimizer_device == StateDevice::cpu && (stage < 3 || setup_.weight_device == StateDevice::cpu);
    if (offloads) {
      say(facts::offload_everything, "true");
      settle("optimizer_device");
      settle("weight_device");
    }
    if ((setup_.tensor_parallel > 1) != setup_.sequence_parallel)
      lack("sequence_parallel", "torchtitan's tensor parallelism splits norms along the sequence");
    settle("sequence_parallel");
  }

  // Switches that are off unless given, of models with experts; and who carries their tokens.
  void experts() {
    const bool has_any = spec_.has_experts();
    for (const char* key : {"router_fusion", "permute_fusion"}) {
      settle(key);
      if (!has_any) drop(key);
    }
    if (setup_.expert_capacity == 0) {
      drop("expert_capacity");
      if (setup_.static_experts) lack("static_experts", "Megatron-LM pads to --moe-expert-capacity-factor");
    }
    if (!has_any) return;
    settle("expert_dispatcher");
    const bool is_flexible = setup_.expert_dispatcher != ExpertDispatcher::nccl;
    say(facts::dispatcher, is_flexible ? "flex" : "nccl");
    if (is_flexible) say(facts::flex_backend, text("expert_dispatcher"));
  }

  // Whole iterations are captured by Megatron-core itself, parts of layers by Transformer Engine.
  void graphs() {
    if (setup_.cuda_graphs.empty()) return;
    settle("cuda_graphs");
    const std::vector<std::string> words = listed_words(setup_.cuda_graphs);
    const bool is_whole = std::find(words.begin(), words.end(), whole_iteration) != words.end();
    say(facts::graphs, is_whole ? "local" : "true");
    say(facts::graph_scope, is_whole ? std::string(whole_iteration) : fmt::format("{}", fmt::join(words, " ")));
  }

  // What the compiler fuses by itself.
  void compiled() {
    if (!setup_.compile || (!is(LaunchFormat::torchtitan) && !is(LaunchFormat::hf))) return;
    settle("fused_kernels");
    if (setup_.loss == LossForm::fused) settle("loss");
  }

  void attention() {
    if (!is(LaunchFormat::megatron) && !is(LaunchFormat::hf)) return;
    settle("flash_attention");
    if (setup_.flash_attention && setup_.attention_kernel == AttentionKernel::triton) return;  // no flag says it
    say(facts::attention_backend,
        setup_.flash_attention ? std::string(to_string(setup_.attention_kernel)) : std::string("none"));
    if (setup_.flash_attention) settle("attention_kernel");
  }

  // 1f1b over several chunks is interleaved by either name.
  void pipeline() {
    const std::string name = schedule_name(setup_);
    if (setup_.pipeline_parallel == 1) {
      drop("pipeline_schedule");
      drop("pipeline_chunks");
      settle("pipeline_schedule");
      settle("pipeline_chunks");
      return;
    }
    if (is(LaunchFormat::megatron)) {
      if (name == interleaved_schedule || name == default_schedule) settle("pipeline_schedule");
      if (setup_.pipeline_chunks == 1) {
        drop("pipeline_chunks");
        settle("pipeline_chunks");
      }
    }
    if (!is(LaunchFormat::torchtitan)) return;
    say("model.pipeline_schedule", name);
    const std::int64_t chunks = setup_.pipeline_parallel * setup_.pipeline_chunks;
    const std::int64_t layers = (spec_.all_layers() + chunks - 1) / chunks;
    const std::int64_t back =
        (spec_.all_layers() + layers * setup_.pipeline_parallel - 1) / (layers * setup_.pipeline_parallel);
    settle("pipeline_chunks");
    if (back == setup_.pipeline_chunks)
      say(facts::layers_per_chunk, layers);
    else
      lack("pipeline_chunks", "torchtitan counts the layers of a chunk, which don't come out");
  }

  // Of each gradient, as its flag counts them.
  [[nodiscard]] std::int64_t gradient_bytes() const {
    return is(LaunchFormat::megatron) ? setup_.main_gradients == StateType::bf16 ? 2 : 4 : setup_.is_wide() ? 4 : 2;
  }
  // What the launch's own framework does where nothing is said.
  [[nodiscard]] std::int64_t usual_bucket() const {
    TrainingSetup there = setup_;
    there.framework = static_cast<Framework>(framework_words().find(usual_framework(format_)).value());
    return default_bucket_bytes(there);
  }
  [[nodiscard]] bool keeps_stage() const {
    return std::none_of(made_.unsaid.begin(), made_.unsaid.end(),
                        [](const UnsaidKey& each) { return each.key == "model.zero_stage"; });
  }

  void buckets() {
    const std::int64_t bytes = setup_.bucket_bytes, wide = gradient_bytes();
    // DeepSpeed counts gradients, whose type is then what the reader finds.
    const bool counts = is(LaunchFormat::deepspeed) && (setup_.precision == TrainingPrecision::fp32 ||
                                                        setup_.precision == TrainingPrecision::bf16_mixed ||
                                                        setup_.precision == TrainingPrecision::fp16_mixed);
    const bool is_known = keeps_stage() && (counts || !is(LaunchFormat::deepspeed));
    if (is_known && bytes == usual_bucket()) return settle("bucket_bytes");
    if (scenario_.training.bucket_bytes == 0) return settle("bucket_bytes");  // the framework's own are as good
    if (bytes == whole_layers)                                                // no number to write
      return lack("bucket_bytes", "it has buckets where FSDP reduces a layer at a time");
    if ((is(LaunchFormat::megatron) || counts) && bytes % wide == 0) {
      say(facts::bucket_elements, bytes / wide);
      settle("bucket_bytes");
    }
    if (is(LaunchFormat::hf) && bytes % (1 << 20) == 0) {
      say(facts::bucket_mib, bytes >> 20);
      settle("bucket_bytes");
    }
  }

  void allocator() {
    const bool is_expandable = scenario_.allocator == expandable_policy;
    const bool is_script = is(LaunchFormat::megatron) || is(LaunchFormat::hf);
    if (is_script && (is_expandable || scenario_.allocator == torch_policy)) {
      std::string settings = is_expandable ? "expandable_segments:True" : "";
      if (!scenario_.allocator_config.empty()) settings += (settings.empty() ? "" : ",") + scenario_.allocator_config;
      if (!settings.empty()) say(facts::allocator_settings, settings);
      return;
    }
    if (scenario_.allocator != torch_policy)
      made_.unsaid.push_back({"memory.allocator", scenario_.allocator, "its launch has no allocator"});
    if (!scenario_.allocator_config.empty())
      made_.unsaid.push_back({"memory.config", scenario_.allocator_config, "set PYTORCH_CUDA_ALLOC_CONF"});
  }

  void model() {
    if (setup_.pipeline_split == 0) drop("pipeline_split");
    if (is(LaunchFormat::megatron)) {
      ShapeFacts shape = shape_facts(spec_);
      made_.facts.merge(shape.facts);
      for (const std::string& what : shape.unsaid) lack("name", "Megatron-LM has no flag for " + what);
      return;
    }
    if (scenario_.layers > 0)
      made_.unsaid.push_back(
          {"model.layers", std::to_string(scenario_.layers), "the model has its own number of layers"});
    if (is(LaunchFormat::hf)) return say(facts::model, published_name());
    const auto titan = is(LaunchFormat::torchtitan) ? titan_model(scenario_.model) : std::nullopt;
    if (titan) {
      say(facts::model, std::string(titan->name));
      say(facts::flavor, std::string(titan->flavor));
    } else {
      lack("name", is(LaunchFormat::torchtitan) ? "torchtitan has no flavor of it" : "the model is the program's");
    }
  }

  // What a program loads it by: its id on the Hugging Face Hub, where it is read as the same model again.
  [[nodiscard]] std::string published_name() const {
    for (const std::string& id : published_ids(scenario_.model))
      if (const auto alias = find_alias(id);
          alias && alias->shape == scenario_.model && alias->overrides.empty() && !alias->is_nf4)
        return id;
    return scenario_.model;
  }

  void dropout() {
    if (!is(LaunchFormat::megatron)) {
      if (setup_.dropout == spec_.dropout) settle("dropout");
      if (setup_.sequence == spec_.max_positions) settle("sequence");
      if (is(LaunchFormat::deepspeed) && setup_.tensor_parallel == 1) drop("tensor_parallel");
      return;
    }
    const double attention = setup_.dropout == spec_.dropout ? spec_.attention_dropout : setup_.dropout;
    say(facts::hidden_dropout, fmt::format("{}", setup_.dropout));
    say(facts::attention_dropout, fmt::format("{}", attention));
    settle("dropout");
  }

  // How many batches, and of what, a program's data say.
  void evaluation() {
    if (setup_.evaluate_every > 0) lack("evaluate_every", "a launch is exported without its evaluations");
    for (const char* key :
         {"evaluate_every", "evaluation_batches", "evaluation_micro_batch", "evaluation_keeps", "evaluation_flush"}) {
      settle(key);
      drop(key);
    }
  }

  const Scenario& scenario_;
  const TrainingSetup& setup_;
  const ModelSpec& spec_;
  LaunchFormat format_;
  ScenarioFacts made_;
};

}  // namespace

ScenarioFacts facts_of(const Scenario& scenario, const TrainingSetup& setup, const ModelSpec& spec, LaunchFormat format,
                       std::int64_t gpus_per_node) {
  return Decomposer(scenario, setup, spec, format).take(gpus_per_node);
}

}  // namespace spillway::launch
