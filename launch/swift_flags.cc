// Flags of ms-swift 3 and 4 (swift/arguments, swift/megatron/arguments): beside the Trainer's for `swift sft`, beside
// Megatron-LM's for `megatron sft`.
#include <array>
#include <utility>

#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

void of_both(FlagRows& rows) {
  rows.read("model", "model.name", facts::model, "", "a bundled model by its published name, or a folder")
      .read("max_length", "model.sequence", whole)
      .read("packing_length", "model.sequence", whole)
      .read("tuner_type", "model.trainable", facts::adapter, "lora=lora full=none", "")
      .read("train_type", "model.trainable", facts::adapter, "lora=lora full=none", "its name before 4")
      .read("sft_type", "model.trainable", facts::adapter, "lora=lora full=none", "its name before 3")
      .read("lora_rank", "model.lora_rank", whole)
      .read("lora_dropout", "model.lora_dropout", "")
      .read("target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .as_modelled_if("freeze_aligner", "true", "")
      .or_else(FlagRole::adds)
      .as_modelled_if("freeze_llm", "false", "")
      .or_else(FlagRole::saves)
      .as_modelled_if("task_type", "causal_lm", "the loss of the next token is modelled")
      .as_modelled_if("packing", "true", "sequences are full")
      .as_modelled_if("padding_free", "true", "sequences are full")
      .not_said("device_map", "where weights live is modelled one way")
      .saves("freeze_parameters freeze_parameters_ratio freeze_parameters_regex", "frozen weights lower memory")
      .not_said("loss_type num_labels problem_type router_aux_loss_coef enable_dft_loss experts_impl",
                "the loss of the next token is modelled, in PyTorch's own layers")
      .read("modules_to_save", "model.modules_to_save", facts::saved_modules, "", "")
      .adds("trainable_parameters use_dora", "more weights are trained: raises memory")
      .no_effect(
          "dataset cached_val_dataset new_special_tokens early_stop_interval val_dataset cached_dataset dataset_* "
          "split_dataset_ratio load_from_cache_file template "
          "template_backend system truncation_strategy agent_template loss_scale use_hf hub_token model_author "
          "model_name model_type model_revision columns strict lora_alpha "
          "vit_gradient_checkpointing vit_lr aligner_lr add_version use_swanlab add_non_thinking_prefix output_dir "
          "save "
          "save_safetensors load_safetensors merge_lora max_epochs num_train_epochs response_prefix custom_* "
          "remove_unused_columns lazy_tokenize external_plugins enable_thinking init_weights check_model "
          "create_checkpoint_symlink report_to group_by_length streaming shuffle_* interleave_prob stopping_strategy "
          "acc_strategy self_cognition_* callbacks metric ddp_backend train_dataloader_shuffle "
          "data_seed ignore_args_error model_kwargs use_chat_template gradient_checkpointing_kwargs",
          "of the data or of the run");
}

std::vector<LaunchFlag> of_trainer() {
  FlagRows rows(LaunchFormat::swift);
  of_both(rows);
  rows.read("freeze_vit", "model.train_tower", facts::frozen_tower, on_off, "true if not given")
      .read("max_pixels", "model.image_tokens", facts::image_pixels, whole, "an image's pixels over a token's")
      .read("torch_dtype", "model.precision", "bfloat16=bf16 float16=fp16_mixed float32=fp32",
            "weights as they are loaded; with DeepSpeed bf16_mixed")
      .read("attn_impl", "model.flash_attention", facts::attention_backend,
            "flash_attn=flash2 flash_attention_2=flash2 flash_attention_3=best sdpa=best eager=none",
            "and model.attention_kernel")
      .read("rlhf_type", "model.loss", facts::objective, "dpo=preference kto=unpaired grpo=group",
            "swift rlhf; dpo where it isn't given")
      .read("sleep_level", "model.rollout_sleep", facts::vllm_sleep, "0=0 1=1 2=2", "swift rlhf")
      .saves("offload_model offload_optimizer move_model_batches",
             "the training's own weights and states leave while answers are given")
      .adds("reward_model teacher_model", "a model more is held")
      .no_effect(
          "ref_* reward_* rpo_alpha desirable_weight undesirable_weight temperature top_p top_k repetition_penalty "
          "vllm_max_model_len vllm_limit_mm_per_prompt vllm_enforce_eager vllm_server_* vllm_enable_prefix_caching "
          "log_completions log_entropy num_iterations epsilon* soft_* cosine_* repetition_* scale_rewards "
          "dynamic_sample max_resample_times overlong_filter importance_sampling_level stop_words",
          "of rewards, of sampling, or the engine's own")
      .read("fsdp", "model.zero_stage", facts::fsdp, "fsdp2=3", "")
      .read("sequence_parallel_size", "model.context_parallel", whole, "all to all, counted as a ring")
      .read("quant_bits", "model.base_weights", facts::base_bits, "4=4 8=8", "with adapters")
      .file("deepspeed", LaunchFormat::deepspeed,
            "DeepSpeed's JSON file, or zero0 to zero3, zero2_offload, zero3_offload")
      .as_modelled_if("quant_method", "bnb", "");
  return rows.take();
}

std::vector<LaunchFlag> of_megatron() {
  FlagRows rows(LaunchFormat::swift_megatron);
  of_both(rows);
  rows.read("torch_dtype", "model.precision", "bfloat16=bf16_mixed float16=fp16_mixed", "")
      .as_modelled_if("freeze_vit", "true", "")
      .or_else(FlagRole::adds)
      .no_effect("max_pixels", "of the data or of the run");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> swift_flags() {
  std::vector<LaunchFlag> all = of_trainer();
  for (LaunchFlag& row : of_megatron()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
