// One flag or key of a launch as its files have it, before anybody knows what it means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/floors.h"
#include "base/text_budget.h"
#include "base/words.h"
#include "launch/shell_script.h"

namespace spillway::launch {

// The owner of flags or keys: the program, or what starts it.
enum class LaunchFormat : std::uint8_t {
  megatron,        // arguments of Megatron-LM and keys of Megatron-Bridge
  torchtitan,      // its TOML file
  deepspeed,       // its JSON file
  accelerate,      // accelerate's YAML file, and the flags of `accelerate launch`
  hf,              // Hugging Face TrainingArguments and the trainers made of them (axolotl)
  nanotron,        // its YAML file
  bridge,          // recipes of Megatron-Bridge and what overrides them
  nemo1,           // YAML of NeMo 1
  primus,          // its YAML file
  swift,           // flags of ms-swift
  swift_megatron,  // those of its megatron commands
  automodel,       // YAML of NeMo AutoModel
  python,          // keywords of transformers', PEFT's and TRL's classes
  unsloth,         // those of its FastLanguageModel
  torchtune,       // its YAML file
  neox,            // YAML of GPT-NeoX
  openrlhf,        // flags of its supervised training
  verl,            // keys of its supervised training
  openrlhf_rl,     // flags of its train_ppo_ray
  verl_rl,         // keys of its main_ppo
  litgpt,          // its YAML file
  foundry,         // YAML of llm-foundry
  launcher,        // torchrun, deepspeed, srun, sbatch
  environment      // variables
};
// In the order of the enum; those that --from takes first.
const Words& launch_format_words();
inline constexpr std::size_t named_launch_formats = 22;

struct LaunchSetting {
  LaunchFormat format = LaunchFormat::megatron;
  std::string name;   // as in launch_table.h: without dashes, parts of a document joined by dots
  std::string shown;  // as the file has it: "--bf16", "training.seq_len"
  std::string value;  // "true" of a flag without one; lists joined by commas
  std::string file;
  std::string place;      // "line 12" or "/training/seq_len"
  std::string unknown{};  // the shell variable that nothing gives a value
  bool is_null = false;   // a document's null: as if not given
};

// A document's leaves in its order; the format is left to the caller, `name` is the path with dots.
// Throw InputError (file, place) for what is not well-formed, and for more than the budget has.
std::vector<LaunchSetting> json_settings(const std::string& text, TextBudget& budget);
std::vector<LaunchSetting> yaml_settings(const std::string& text, TextBudget& budget);
std::vector<LaunchSetting> toml_settings(const std::string& text, TextBudget& budget);

// The part of a budget that keeping a setting costs.
inline std::size_t letters_of(const LaunchSetting& setting) {
  constexpr std::size_t beside = 96;
  return beside + setting.name.size() + setting.shown.size() + setting.value.size() + setting.file.size() +
         setting.place.size();
}

}  // namespace spillway::launch
