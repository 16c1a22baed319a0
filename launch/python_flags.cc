// Keywords of Python calls that the Trainer's arguments don't have: of transformers' from_pretrained, PEFT's
// LoraConfig, and Unsloth's FastLanguageModel (unsloth/models/loader.py, llama.py).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

constexpr std::string_view of_loading =
    "output_dir quantization_config peft_config config revision cache_dir token tokenizer processing_class "
    "trust_remote_code use_cache local_files_only use_safetensors pad_token_id dataset_text_field dataset_num_proc "
    "subfolder offload_folder";

std::vector<LaunchFlag> of_transformers() {
  FlagRows rows(LaunchFormat::python);
  rows.read("gradient_checkpointing_enable", "model.recompute", "true=full", "that it is called")
      .read("tokenizer_max_length", "model.sequence", facts::tokenizer_length, whole,
            "max_length or model_max_length of a tokenizer, where nothing else says the sequence")
      .as_modelled("sftconfig dpoconfig ktoconfig grpoconfig", "trl's defaults count where its keywords say nothing")
      .as_modelled_if("device_map.", "0", "the whole model is on its GPU")
      .not_said("max_memory device_map device_map.*", "where weights live is modelled one way")
      .no_effect(of_loading, "of loading");
  return rows.take();
}

std::vector<LaunchFlag> of_unsloth() {
  FlagRows rows(LaunchFormat::unsloth);
  rows.read("get_peft_model", "model.trainable", facts::adapter, "true=lora", "that it is called")
      .read("load_in_4bit", "model.base_weights", facts::base_bits, "true=4 false=16", "with adapters")
      .read("load_in_fp8", "model.base_weights", facts::base_fp8, "true=true row=true block=true false=false",
            "with adapters; a scale per row counts as per block")
      .read("r", "model.lora_rank", whole)
      .read("target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .read("modules_to_save", "model.modules_to_save", facts::saved_modules, "", "")
      .read("use_gradient_checkpointing", "model.recompute", facts::checkpointing,
            "unsloth=offloaded true=full false=none", "\"unsloth\" keeps the layers' inputs in host memory")
      .adds("full_finetuning qat_scheme fast_inference gpu_memory_utilization finetune_* bias", "raises memory")
      .no_effect(of_loading, "of loading")
      .no_effect(
          "dtype random_state use_rslora loftq_config rope_scaling fix_tokenizer max_lora_rank "
          "resize_model_vocab disable_log_stats",
          "of the start, or a value");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> python_flags() {
  std::vector<LaunchFlag> all = of_transformers();
  for (LaunchFlag& row : of_unsloth()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
