#include "launch/launch_marks.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "launch/launch_table.h"

namespace spillway::launch {
namespace {

// All of `all` must be there: names of settings ("--" stands for a flag of a command alone), "name=value", and behind
// an
// @ patterns of a command's words. A * stands for anything.
struct Mark {
  std::string_view whose, all;
};

// What is known to be none of ours.
struct Refusal {
  std::string_view whose, cause, remedy;
};

constexpr std::string_view no_xla = "JAX programs are laid out in memory by XLA, which is not modelled";
constexpr std::string_view no_rl = "trains by reinforcement: several models and a server of answers share the GPUs";
constexpr std::string_view by_config = "give its model's config.json: spillway fit config.json --on MACHINE";
constexpr std::string_view by_model = "write the training of its policy alone as a scenario: spillway new --model NAME";

constexpr std::array<Refusal, 18> refusals = {{
    {"NeMo 2", "its recipe is Python that another program has, which is not run",
     "give the same as flags of Megatron-LM, or of Megatron-Bridge's run_recipe.py"},
    {"Levanter", no_xla, by_config},
    {"MaxText", no_xla, by_config},
    {"verl on Megatron", "its models are laid out by Megatron-core, which trains no answers here", by_model},
    {"OpenRLHF other than train_sft and train_ppo_ray",
     "has a loss and models beside the trained one that are not modelled", by_model},
    {"TRL's online training", no_rl, by_model},
    {"TRL other than trl sft, dpo, kto and grpo",
     "has a loss, and models beside the trained one, that are not modelled", by_model},
    {"NeMo RL", no_rl, by_model},
    {"ms-swift's rlhf on Megatron", "has a loss and models beside the trained one that are not modelled", by_model},
    {"LLaMA-Factory on another engine", "its settings are those of Megatron-core or KTransformers",
     "give what it trains as flags of Megatron-LM"},
    {"torchtitan inside Primus", "its overrides are torchtitan's", "give them as torchtitan's TOML file"},
    {"a model's config.json", "it says a model and no training",
     "spillway fit it, or give it beside the launch: --model config.json"},
    {"a result of spillway", "it is no launch", "its scenario is under \"scenario\""},
    {"Kubernetes", "its manifest starts a container", "give the script or the command that it starts there"},
    {"a container's file", "it says what to install",
     "give the script or the command that it starts (CMD, ENTRYPOINT)"},
    {"weights in safetensors", "it lists tensors", "spillway fit their folder's config.json"},
    {"a trace", "it is what was recorded of a run", "spillway explain it"},
    {"xtuner", "its configuration is Python that another program has, which is not run",
     "give the same as keywords of TrainingArguments"},
}};

// Of a command: the first that matches decides.
constexpr std::array<Mark, 32> command_marks = {{
    {"verl on Megatron", "actor_rollout_ref.actor.strategy=megatron"},
    {"verl on Megatron", "actor_rollout_ref.actor.megatron.*"},
    {"verl on Megatron", "--config_name=*megatron*"},
    {"verl-rl", "@*verl.trainer.main_ppo*"},
    {"verl-rl", "actor_rollout_ref.*"},
    {"verl", "@*verl.trainer.*sft*"},
    {"openrlhf", "@*openrlhf.cli.train_sft*"},
    {"openrlhf-rl", "@*openrlhf.cli.train_ppo_ray*"},
    {"OpenRLHF other than train_sft and train_ppo_ray", "@*openrlhf.cli.*"},
    {"swift-megatron", "@* megatron sft *"},
    {"swift-megatron", "@* megatron pt *"},
    {"ms-swift's rlhf on Megatron", "@* megatron rlhf *"},
    {"swift", "@* swift rlhf *"},
    {"swift", "@* swift sft *"},
    {"swift", "@* swift pt *"},
    {"TRL's online training", "@* trl rloo *"},
    {"hf", "@* trl sft *"},
    {"hf", "@* trl dpo *"},
    {"hf", "@* trl kto *"},
    {"hf", "@* trl grpo *"},
    {"TRL other than trl sft, dpo, kto and grpo", "@* trl *"},
    {"hf", "@* axolotl *"},
    {"hf", "@* llamafactory-cli *"},
    {"litgpt", "@* litgpt *"},
    {"torchtune", "@* tune run *"},
    {"MaxText", "@*[Mm]ax[Tt]ext*"},
    {"Levanter", "@* levanter.*"},
    {"xtuner", "@* xtuner *"},
    {"bridge", "@*run_recipe.py *"},
    {"bridge", "@*run_script.py * recipe"},
    {"torchtitan", "@* torchtitan.train *"},
    {"megatron", "@*pretrain_*.py *"},
}};

constexpr std::array<Mark, 72> key_marks = {{
    {"hf", "train_dataset cutoff_len"},
    {"hf", "model_class peft_config.name"},
    {"megatron", "--tensor_model_parallel_size"},
    {"megatron", "--model_parallel_size"},
    {"megatron", "--micro_batch_size"},
    {"megatron", "--num_layers"},
    {"megatron", "--yaml_cfg"},
    {"megatron", "tensor_model_parallel_size"},
    {"megatron", "model_parallel.tensor_model_parallel_size"},
    {"megatron", "language_model.num_layers"},
    {"megatron", "ddp.use_distributed_optimizer"},
    {"megatron", "train.micro_batch_size model.tensor_model_parallel_size"},
    {"bridge", "--recipe"},
    {"bridge", "recipe train.micro_batch_size"},
    {"bridge", "recipe train.global_batch_size"},
    {"nemo1", "trainer.devices exp_manager*"},
    {"nemo1", "trainer.devices model.mcore_gpt"},
    {"nemo1", "trainer.devices model.tensor_model_parallel_size"},
    {"automodel", "*_target_=nemo_automodel*"},
    {"automodel", "step_scheduler.local_batch_size"},
    {"torchtitan inside Primus", "modules.*.framework=torchtitan"},
    {"primus", "modules.*.framework=megatron"},
    {"primus", "modules.*.overrides.*"},
    {"torchtitan", "parallelism.data_parallel_shard_degree"},
    {"torchtitan", "parallelism.tensor_parallel_degree"},
    {"torchtitan", "training.tensor_parallel_degree"},
    {"torchtitan", "training.seq_len"},
    {"torchtitan", "training.local_batch_size"},
    {"torchtitan", "model.flavor"},
    {"torchtitan", "--job.config_file"},
    {"nanotron", "parallelism.tp"},
    {"nanotron", "tokens.micro_batch_size"},
    {"nanotron", "model.model_config.hidden_size"},
    {"deepspeed", "--deepspeed_config"},
    {"deepspeed", "zero_optimization*"},
    {"deepspeed", "train_micro_batch_size_per_gpu"},
    {"deepspeed", "train_batch_size gradient_accumulation_steps"},
    {"deepspeed", "train_batch_size bf16.enabled"},
    {"deepspeed", "train_batch_size fp16.enabled"},
    {"accelerate", "distributed_type"},
    {"accelerate", "compute_environment"},
    {"accelerate", "fsdp_sharding_strategy"},
    {"hf", "per_device_train_batch_size"},
    {"hf", "per_gpu_train_batch_size"},
    {"hf", "model_name_or_path"},
    {"hf", "--gradient_accumulation_steps"},
    {"hf", "base_model sequence_len"},
    {"hf", "base_model micro_batch_size"},
    {"LLaMA-Factory on another engine", "use_megatron_bridge=true"},
    {"LLaMA-Factory on another engine", "use_mca=true"},
    {"LLaMA-Factory on another engine", "use_kt=true"},
    {"hf", "stage finetuning_type"},
    {"hf", "stage cutoff_len"},
    {"torchtune", "*_component_=torchtune.*"},
    {"neox", "pipe_parallel_size"},
    {"neox", "model_parallel_size train_micro_batch_size_per_gpu"},
    {"verl on Megatron", "actor_rollout_ref.actor.strategy=megatron"},
    {"verl on Megatron", "actor_rollout_ref.actor.megatron.*"},
    {"verl-rl", "actor_rollout_ref.*"},
    {"verl", "data.micro_batch_size_per_gpu model.partial_pretrain"},
    {"litgpt", "checkpoint_dir lora_query"},
    {"litgpt", "checkpoint_dir train.micro_batch_size"},
    {"litgpt", "model_name train.micro_batch_size"},
    {"foundry", "device_train_microbatch_size"},
    {"foundry", "global_train_batch_size max_duration"},
    {"Levanter", "trainer.train_batch_size model.type"},
    {"MaxText", "per_device_batch_size max_target_length"},
    {"NeMo RL", "grpo.* policy.*"},
    {"a model's config.json", "model_type architectures"},
    {"a result of spillway", "format scenario.schema=spillway*"},
    {"Kubernetes", "apiversion kind"},
    {"a trace", "traceevents"},
}};

// As marks have it: "--" before flags of a command, no other dashes.
std::string plain_name(std::string_view shown) {
  const bool is_flag = shown.starts_with('-');
  while (shown.starts_with('-')) shown.remove_prefix(1);
  return (is_flag ? "--" : "") + flag_name(LaunchFormat::hf, shown);
}

bool fits_pattern(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

class MarkReader {
 public:
  explicit MarkReader(const Marked& launch) : launch_(launch) {
    for (const LaunchSetting& each : launch.settings) names_.emplace_back(plain_name(each.shown), &each);
  }

  [[nodiscard]] bool has(const Mark& mark) const {
    for (const std::string& condition : listed_words(mark.all))
      if (!is_met(condition)) return false;
    return true;
  }

 private:
  [[nodiscard]] bool is_met(const std::string& condition) const {
    if (condition.starts_with('@')) return false;
    const std::size_t equals = condition.find('=');
    const std::string value = equals == std::string::npos ? "*" : condition.substr(equals + 1);
    const std::string name = condition.substr(0, equals);
    const bool is_pattern = name.find('*') != std::string::npos;
    return std::any_of(names_.begin(), names_.end(), [&](const auto& each) {
      std::string_view of = each.first;
      if (!name.starts_with("--") && of.starts_with("--")) of.remove_prefix(2);
      return (is_pattern ? fits_pattern(name, std::string(of)) : name == of) &&
             (value == "*" || fits_pattern(value, each.second->value));
    });
  }

  const Marked& launch_;
  std::vector<std::pair<std::string, const LaunchSetting*>> names_;
};

[[noreturn]] void refuse(std::string_view whose, const std::string& file, const std::string& place) {
  const auto found =
      std::find_if(refusals.begin(), refusals.end(), [&](const Refusal& each) { return each.whose == whose; });
  SPILLWAY_ASSERT(found != refusals.end());
  throw InputError(file, place, fmt::format("{} is not read: {}", whose, found->cause), std::string(found->remedy));
}

LaunchFormat format_of(std::string_view whose, const Marked& launch) {
  const auto format = launch_format_words().find(whose);
  if (!format) refuse(whose, launch.file, launch.place);
  return static_cast<LaunchFormat>(*format);
}

}  // namespace

std::optional<LaunchFormat> marked_format(const Marked& launch) {
  const MarkReader reader(launch);
  if (!launch.command.empty())
    for (const Mark& mark : command_marks) {
      const bool is_command = mark.all.starts_with('@');
      if (is_command ? fits_pattern(std::string(mark.all.substr(1)), launch.command) : reader.has(mark))
        return format_of(mark.whose, launch);
    }
  std::map<std::string_view, std::string_view> found;  // whose, by what
  for (const Mark& mark : key_marks)
    if (!found.contains(mark.whose) && reader.has(mark)) found.emplace(mark.whose, mark.all);
  for (const auto& [whose, by] : found)  // of what is refused, no other's marks count
    if (!launch_format_words().find(whose)) refuse(whose, launch.file, launch.place);
  for (const InnerFormat& inner : inner_formats()) {
    const Words& words = launch_format_words();
    if (found.contains(words[inner.format].name)) found.erase(words[inner.of].name);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return format_of(found.begin()->first, launch);
  const auto& [one, by_one] = *found.begin();
  const auto& [other, by_other] = *std::next(found.begin());
  throw InputError(
      launch.file, launch.place,
      fmt::format("it has marks of two launchers: of {} ({}) and of {} ({})", one, by_one, other, by_other),
      "give the files of one launch, or name the launcher: --from " + known_launchers());
}

void refuse_by_text(std::string_view text, const std::string& file) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == '#' || line.starts_with("ARG ")) continue;
    if (line.starts_with("FROM ")) refuse("a container's file", file, "");
    return;
  }
}

std::string known_launchers() {
  std::string names;
  for (std::size_t i = 0; i < named_launch_formats; ++i)
    names.append(i == 0 ? "" : ", ").append(launch_format_words()[i].name);
  return names;
}

}  // namespace spillway::launch
