// Fields of Hugging Face's TrainingArguments (transformers 4.30 to 5, trl, axolotl), and keys of accelerate's YAML
// file, which `accelerate launch` takes as flags.
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

constexpr std::string_view optimizers =
    "adamw_torch=adamw/foreach adamw_torch_fused=adamw/fused adamw_hf=adamw/foreach adamw_apex_fused=adamw/fused "
    "adamw_bnb_8bit=adamw_8bit/fused adamw_8bit=adamw_8bit/fused adamw_torch_8bit=torchao_8bit/fused "
    "adamw_torch_4bit=torchao_4bit/fused "
    "paged_adamw_32bit=adamw/fused paged_adamw=adamw/fused paged_adamw_8bit=adamw_8bit/fused "
    "adafactor=adafactor/foreach sgd=sgd/foreach "
    "muon=muon/foreach galore_adamw=galore_adamw/foreach apollo_adamw=apollo_adamw/foreach lomo=lomo/foreach "
    "adalomo=adalomo/foreach";
constexpr std::string_view backward_prefetch = "BACKWARD_PRE=false BACKWARD_POST=true";

void huggingface_training(FlagRows& rows) {
  rows.say("model_name_or_path", "model.name", facts::model, "",
           "a bundled model by its published name, or a folder with config.json")
      .read("model_name", "model.name", facts::model, "", "")
      .read("base_model", "model.name", facts::model, "", "axolotl")
      .say("per_device_train_batch_size", "model.micro_batch", whole)
      .read("per_gpu_train_batch_size", "model.micro_batch", whole, "its former name")
      .read("micro_batch_size", "model.micro_batch", whole, "axolotl")
      .say("gradient_accumulation_steps", "model.gradient_accumulation", whole)
      .say("max_seq_length", "model.sequence", whole)
      .read("max_length", "model.sequence", whole, "trl")
      .read("block_size", "model.sequence", whole, "run_clm.py")
      .read("model_max_length", "model.sequence", whole, "")
      .read("sequence_len", "model.sequence", whole, "axolotl")
      .read("cutoff_len", "model.sequence", whole, "LLaMA-Factory")
      .say("bf16", "model.precision", "true=bf16_mixed full=bf16_mixed auto=bf16_mixed false=fp32",
           "axolotl, or pure_bf16 of LLaMA-Factory: bf16, weights in 2 bytes alone")
      .read("pure_bf16", "model.precision", "true=bf16 false=-", "LLaMA-Factory")
      .say("fp16", "model.precision", facts::half, "true=fp16_mixed false=-", "")
      .say("torch_dtype", "model.precision", facts::weights_type, "bfloat16=bf16 float32=fp32 auto=-",
           "with bf16, and neither DeepSpeed nor FSDP: weights in 2 bytes alone")
      .read("dtype", "model.precision", facts::weights_type, "bfloat16=bf16 float32=fp32 auto=-", "")
      .read("fp8", "model.precision", facts::fp8, "true=fp8_mixed false=-", "axolotl")
      .read("tf32", "model.precision", facts::tf32, "true=tf32 false=-", "where weights have 4 bytes")
      .say("gradient_checkpointing", "model.recompute",
           "true=full unsloth=full offload=full offload_disk=full false=none",
           "offload, unsloth: and offload.technique checkpoints")
      .read("activation_offloading", "offload.technique", facts::offload_inputs,
            "true=host legacy=host hidden_states=host disk=drive false=-",
            "checkpoints where layers are recomputed, else ssdtrain")
      .read("offload_activations", "offload.technique", facts::offload_inputs, "true=host false=-", "")
      .read("gradient_checkpointing_offload", "offload.technique", facts::offload_inputs, "true=host false=-", "")
      .read("gradient_checkpointing_kwargs.offload", "offload.technique", facts::offload_inputs, "true=host false=-",
            "")
      .read("use_unsloth_gc", "offload.technique", facts::offload_inputs, "true=host false=-", "LLaMA-Factory")
      .read("disable_gradient_checkpointing", "model.recompute", "true=none false=full", "LLaMA-Factory")
      .say("optim", "model.optimizer", facts::optimizer, optimizers, "and model.optimizer_form")
      .read("optimizer", "model.optimizer", facts::optimizer, optimizers, "axolotl")
      .read("use_galore", "model.optimizer", facts::optimizer, "true=galore_adamw/foreach false=-", "LLaMA-Factory")
      .read("use_apollo", "model.optimizer", facts::optimizer, "true=apollo_adamw/foreach false=-", "LLaMA-Factory")
      .say("optim_args", "model.optimizer_rank", facts::optimizer_args, "",
           "the rank of projected gradients; the rest are values of the update")
      .read("galore_rank", "model.optimizer_rank", whole, "LLaMA-Factory, 16 where it isn't given")
      .read("apollo_rank", "model.optimizer_rank", whole, "the same")
      .read("use_badam", "model.trained_layers", facts::block, "true=1 false=-",
            "LLaMA-Factory: a layer at a time, and model.fp32_gradients")
      .say("attn_implementation", "model.flash_attention", facts::attention_backend,
           "sdpa=best flash_attention_2=flash2 flash_attention_3=best eager=none", "and model.attention_kernel")
      .read("use_flash_attn", "model.flash_attention", facts::attention_backend, "true=flash2 false=-", "")
      .read("flash_attention", "model.flash_attention", facts::attention_backend, "true=flash2 false=-", "axolotl")
      .read("flash_attn", "model.flash_attention", facts::attention_backend,
            "fa2=flash2 flash_attention_2=flash2 auto=best sdpa=best disabled=none eager=none", "LLaMA-Factory")
      .read("xformers_attention", "model.flash_attention", facts::attention_backend, "true=best false=-", "axolotl")
      .read("sdp_attention", "model.flash_attention", facts::attention_backend, "true=best false=-", "axolotl")
      .say("torch_compile", "model.compile", on_off)
      .say("use_liger_kernel", "model.loss", facts::liger, "true=chunked false=-",
           "its fused linear cross-entropy, and model.fused_norms, fused_rotary and fused_gate")
      .read("liger_kernel_config.rope", "model.fused_rotary", on_off, "with use_liger_kernel")
      .read("liger_kernel_config.rms_norm", "model.fused_norms", on_off, "the same")
      .read("liger_kernel_config.swiglu", "model.fused_gate", on_off, "the same")
      .read("liger_kernel_config.geglu", "model.fused_gate", on_off, "the same")
      .read("liger_kernel_config.fused_linear_cross_entropy", "model.loss", "true=chunked false=fp32", "the same")
      .read("liger_kernel_config.cross_entropy", "model.loss", "true=fused false=-", "the same")
      .read("liger_rope", "model.fused_rotary", on_off, "axolotl")
      .read("liger_rms_norm", "model.fused_norms", on_off, "axolotl")
      .read("liger_glu_activation", "model.fused_gate", on_off, "axolotl")
      .read("liger_fused_linear_cross_entropy", "model.loss", "true=chunked false=-", "axolotl")
      .read("liger_cross_entropy", "model.loss", "true=fused false=-", "axolotl")
      .read("enable_liger_kernel", "model.loss", facts::liger, "true=chunked false=-", "LLaMA-Factory")
      .read("use_liger", "model.loss", facts::liger, "true=chunked false=-", "trl, formerly")
      .read("cut_cross_entropy", "model.loss", "true=chunked false=-", "axolotl")
      .read("chunked_cross_entropy", "model.loss", "true=chunked false=-", "axolotl")
      .read("loss_type", "model.loss",
            "chunked_nll=chunked nll=fp32 sigmoid=- hinge=- ipo=- kto=- apo_zero_unpaired=- grpo=- "
            "dapo=- bnpo=- dr_grpo=-",
            "trl")
      .read("rl", "model.loss", facts::objective, "dpo=preference kto=unpaired", "axolotl")
      .or_else(FlagRole::adds)
      .read("stage", "model.loss", facts::objective, "dpo=preference kto=unpaired sft=- pt=-", "LLaMA-Factory")
      .or_else(FlagRole::adds)
      .as_modelled_if("pref_loss", "sigmoid", "DPO's loss")
      .or_else(FlagRole::adds)
      .read("precompute_ref_log_probs", "model.reference", facts::known_reference, "true=none false=-", "trl")
      .read("beta", "model.reference", facts::divergence, "", "trl grpo: 0 has no reference")
      .read("use_vllm", "model.rollout_memory", facts::vllm, on_off, "trl grpo")
      .read("vllm_mode", "model.rollout_memory", facts::vllm_mode, "colocate=colocate server=server", "trl grpo")
      .read("vllm_gpu_memory_utilization", "model.rollout_memory", facts::vllm_memory, "",
            "trl grpo, 0.3 where it isn't given")
      .read("vllm_enable_sleep_mode", "model.rollout_sleep", facts::vllm_sleep, "true=2 false=0", "trl grpo")
      .read("vllm_tensor_parallel_size", "model.rollout_parallel", facts::vllm_parallel, whole, "trl grpo")
      .read("num_generations", "model.rollout_group", facts::answers_each, whole, "trl grpo, 8 where it isn't given")
      .read("max_prompt_length", "model.prompt_tokens", facts::prompt_tokens, whole,
            "trl grpo, 512 where it isn't given; sequence is both")
      .read("max_completion_length", "model.sequence", facts::answer_tokens, whole,
            "trl grpo, 256 where it isn't given")
      .as_modelled_if("num_iterations", "1", "each answer is trained on once")
      .or_else(FlagRole::time)
      .read("plugins", "model.loss", facts::plugins, "", "axolotl: CutCrossEntropyPlugin is chunked")
      .say("ddp_bucket_cap_mb", "model.bucket_bytes", facts::bucket_mib, whole, "MiB")
      .read("fsdp", "model.zero_stage", facts::sharding, "",
            "full_shard stage 3, shard_grad_op stage 2; offload is optimizer_device and weight_device cpu")
      .say("tensor_parallel_size", "model.tensor_parallel", whole)
      .read("context_parallel_size", "model.context_parallel", whole, "axolotl")
      .read("sequence_parallel_degree", "model.context_parallel", whole, "axolotl, formerly")
      .read("dp_shard_size", "model.data_parallel", facts::shards, whole, "axolotl")
      .read("dp_replicate_size", "model.data_parallel", facts::replicas, whole, "axolotl")
      .read("expert_parallel_size", "model.expert_parallel", whole, "axolotl")
      .read("fsdp_version", "model.zero_stage", facts::fsdp_version, whole, "axolotl: with fsdp_config")
      .file("deepspeed", LaunchFormat::deepspeed, "DeepSpeed's JSON file")
      .file("config", LaunchFormat::hf, "the YAML file, trl")
      .file("accelerate_config", LaunchFormat::accelerate, "accelerate's YAML file");
}

// LLaMA-Factory's second format (hiyouga/LLaMA-Factory@ff6d4d12, src/llamafactory/v1): plugins by name.
void factory_plugins(FlagRows& rows) {
  constexpr std::string_view whose = "LLaMA-Factory v1";
  rows.read("model", "model.name", facts::model, "", whose)
      .read("global_batch_size", "model.global_batch", whole, whose)
      .read("enable_activation_checkpointing", "model.recompute", "true=full false=none", whose)
      .read("cp_size", "model.context_parallel", whole, whose)
      .read("mp_replicate_size", "model.data_parallel", facts::replicas, whole, whose)
      .read("mp_shard_size", "model.data_parallel", facts::shards, whole, whose)
      .read("dist_config.name", "model.zero_stage", facts::fsdp2, "fsdp2=3 fsdpturbo=3 deepspeed=-", whose)
      .read("dist_config.reshard_after_forward", "model.zero_stage", facts::reshard, "true=3 false=2", whose)
      .read("dist_config.offload_params", "model.optimizer_device", facts::offload_everything, if_on, whose)
      .read("dist_config.ep_size", "model.expert_parallel", whole, whose)
      .file("dist_config.config_file", LaunchFormat::deepspeed, "DeepSpeed's JSON file")
      .read("peft_config.name", "model.trainable", facts::adapter, "lora=factory freeze=factory_freeze", whose)
      .or_else(FlagRole::saves)
      .read("peft_config.r", "model.lora_rank", whole, whose)
      .read("peft_config.lora_dropout", "model.lora_dropout", "", whose)
      .read("peft_config.target_modules", "model.lora_targets", facts::adapter_modules, "", whose)
      .read("peft_config.freeze_trainable_layers", "model.frozen_layers", facts::trained_layers, whole,
            "LLaMA-Factory v1, 2 where it isn't given")
      .as_modelled_if("peft_config.freeze_trainable_modules", "all", "")
      .or_else(FlagRole::saves)
      .adds("peft_config.use_dora peft_config.modules_to_save peft_config.freeze_extra_modules",
            "adapters of linear layers alone are trained (docs/internals/models.md)")
      .no_effect("peft_config.*", "a scale, or of what is written afterwards")
      .read("quant_config.quantization_bit", "model.base_weights", facts::base_bits, "4=4 8=8", whose)
      .read("quant_config.double_quantization", "model.base_weights", facts::double_quant, on_off, whose)
      .as_modelled_if("quant_config.quantization_type", "nf4", "")
      .no_effect("quant_config.*", "a type of the same bytes")
      .read("optim_config.name", "model.optimizer", facts::optimizer, optimizers, whose)
      .no_effect("optim_config.* lr_scheduler_config lr_scheduler_config.*", "values of the update")
      // Its trainer asks for the logits: Liger's cross-entropy is on whole ones. auto: kernels of Ascend alone.
      .read("kernel_config.name", "model.loss", facts::liger, "liger_kernel=fused auto=-", whose)
      .or_else(FlagRole::saves)
      .time("kernel_config.*", "kernels that are not modelled")
      .as_modelled_if("batching_strategy", "padding_free", "sequences are full")
      .or_else(FlagRole::time)
      .as_modelled_if("model_class", "llm", "")
      .or_else(FlagRole::not_said)
      .time("dist_config.ep_dispatcher cp_mode", "how tokens and attention's heads travel is modelled one way")
      .no_effect("dist_config.* init_config init_config.* dist_timeout", "of the start")
      .no_effect("kernel_config quant_config peft_config dist_config optim_config", "none is given")
      .no_effect("train_dataset eval_dataset batching_workers custom_chat_template sample_backend max_new_tokens",
                 "data come in time");
}

void adapters(FlagRows& rows) {
  rows.say("use_peft", "model.trainable", facts::adapter, "true=peft false=-", "trl")
      .read("use_lora", "model.trainable", facts::adapter, "true=lora false=-", "")
      .read("adapter", "model.trainable", facts::adapter, "lora=lora qlora=qlora", "axolotl")
      .read("finetuning_type", "model.trainable", facts::adapter,
            "lora=factory full=factory_full freeze=factory_freeze", "LLaMA-Factory, which recomputes by default")
      .or_else(FlagRole::saves)
      .read("freeze_trainable_layers", "model.frozen_layers", facts::trained_layers, whole,
            "LLaMA-Factory, with finetuning_type freeze: the layers before the last ones of this number")
      .read("freeze_vision_tower", "model.train_tower", facts::frozen_tower, on_off, "LLaMA-Factory, true if not given")
      .read("freeze_multi_modal_projector", "model.train_tower", facts::frozen_projector, on_off,
            "LLaMA-Factory, true if not given")
      .as_modelled_if("freeze_language_model", "false", "")
      .or_else(FlagRole::saves)
      .read("image_max_pixels", "model.image_tokens", facts::image_pixels, whole,
            "LLaMA-Factory, 589824 if not given: an image's pixels over a token's")
      .say("load_in_4bit", "model.base_weights", facts::base_bits, "true=4 false=-", "with adapters")
      .say("load_in_8bit", "model.base_weights", facts::base_bits, "true=8 false=-", "with adapters")
      .read("quantization_bit", "model.base_weights", facts::base_bits, "4=4 8=8", "LLaMA-Factory")
      .say("use_bnb_nested_quant", "model.base_weights", facts::double_quant, on_off, "trl")
      .read("bnb_4bit_use_double_quant", "model.base_weights", facts::double_quant, on_off, "")
      .read("double_quantization", "model.base_weights", facts::double_quant, on_off, "LLaMA-Factory")
      .say("lora_r", "model.lora_rank", whole, "PEFT, trl, axolotl")
      .read("lora_rank", "model.lora_rank", whole, "LLaMA-Factory")
      .say("lora_dropout", "model.lora_dropout", "")
      .say("lora_target_modules", "model.lora_targets", facts::adapter_modules, "", "the least part that has them all")
      .read("lora_target", "model.lora_targets", facts::adapter_modules, "", "LLaMA-Factory")
      .read("lora_target_linear", "model.lora_targets", facts::adapter_modules, "true=all-linear false=-", "axolotl")
      .read("lora_modules_to_save", "model.modules_to_save", facts::saved_modules, "", "PEFT, trl, axolotl")
      .read("modules_to_save", "model.modules_to_save", facts::saved_modules, "", "")
      .read("additional_target", "model.modules_to_save", facts::saved_modules, "", "LLaMA-Factory")
      .as_modelled_if("bnb_4bit_quant_type", "nf4", "")
      .as_modelled_if("quantization_method", "bnb", "")
      .as_modelled_if("lora_task_type", "CAUSAL_LM", "")
      .as_modelled_if("freeze_trainable_modules", "all", "")
      .or_else(FlagRole::saves)
      .no_effect("lora_alpha use_rslora lora_fan_in_fan_out bnb_4bit_compute_dtype bnb_4bit_quant_storage",
                 "a scale or a type of the same bytes");
}

void training_left_out(FlagRows& rows) {
  rows.as_modelled_if("packing", "true", "sequences are full")
      .or_else(FlagRole::time)
      .as_modelled_if("sample_packing", "true", "sequences are full")
      .or_else(FlagRole::time)
      .as_modelled_if("pad_to_sequence_len", "true", "sequences are full")
      .or_else(FlagRole::time)
      .as_modelled_if("flash_attn_cross_entropy", "false", "")
      .or_else(FlagRole::saves)
      .as_modelled_if("auto_find_batch_size", "false", "")
      .time("packing_efficiency_estimate group_by_length pad_to_multiple_of", "sequences are assumed full")
      .adds("use_dora peft_use_dora lora_bias lora_head freeze_extra_modules",
            "adapters of linear layers alone are trained (docs/internals/models.md)")
      .saves("unfrozen_parameters freeze_* lisa_*",
             "set model.trainable or model.frozen_layers yourself (docs/internals/models.md)")
      .not_said("lora_* lora.* peft_* quantization_* bnb_4bit_* use_4bit_quantization relora*",
                "set model.trainable and model.base_weights yourself (docs/internals/models.md)")
      .time("gradient_checkpointing_kwargs.*", "how layers are run again is modelled one way")
      .saves("layer_offloading", "set model.weight_device yourself (docs/internals/models.md)")
      .time("ring_attn_func heads_k_stride", "how context-parallel GPUs share attention is model.context_exchange's")
      .time(
          "torch_compile_backend torch_compile_mode use_ipex full_determinism s2_attention neftune_* deepcompile "
          "flash_attn_* flash_optimum",
          "kernels that are not modelled")
      .saves("liger_* unsloth_* lora_mlp_kernel lora_qkv_kernel lora_o_kernel tiled_mlp* torch_empty_cache_steps",
             "kernels that keep less are not modelled")
      .not_said("flex_attention torchao_*", "kernels that are not modelled")
      .not_said("fsdp_min_num_params", "one unit per layer is assumed")
      .no_effect("fsdp_transformer_layer_cls_to_wrap", "one unit per layer is assumed, whatever it is called")
      .no_effect("half_precision_backend", "of earlier versions")
      .not_said(
          "rpo_alpha ref_model reward_model trl.* ebft.* grpo_* kto_* orpo_* sync_ref_model ref_model_* "
          "simpo_* nemo_gym_* num_labels model_config.* overrides_of_model_config.* qat.* kd_* mixture_of_depths",
          "the loss of the next token is modelled, of one model with its own layers")
      .as_modelled_if("galore_target", "all", "matrices inside layers are projected")
      .or_else(FlagRole::adds)
      .as_modelled_if("apollo_target", "all", "")
      .or_else(FlagRole::adds)
      .as_modelled_if("galore_layerwise", "false", "")
      .or_else(FlagRole::saves)
      .as_modelled_if("apollo_layerwise", "false", "")
      .or_else(FlagRole::saves)
      .as_modelled_if("badam_mode", "layer", "")
      .or_else(FlagRole::adds)
      .adds("optim_target_modules", "with GaLore and APOLLO all matrices inside layers are projected")
      .no_effect("galore_* apollo_* badam_*", "values of the update, or when its space or block changes")
      .saves("loraplus_*", "an optimizer that is not modelled")
      .no_effect(
          "gradient_checkpointing_kwargs.use_reentrant fp16_opt_level fp16_backend bf16_full_eval fp16_full_eval "
          "fp16_full_eval_* float16_full_eval low_cpu_mem_usage",
          "of evaluation or of how it is written")
      .no_effect(
          "truncation_mode dpo_* pref_beta pref_ftx label_smoothing "
          "f_divergence_type f_alpha_divergence_coef generate_during_eval reference_free desirable_weight "
          "undesirable_weight temperature "
          "top_p top_k min_p repetition_penalty epsilon epsilon_high delta scale_rewards reward_weights reward_funcs "
          "reward_model_name_or_path importance_sampling_level mask_truncated_completions log_completions "
          "num_completions_to_print",
          "values of a loss that compares answers, or of how they are drawn")
      .no_effect(
          "adam_beta1 adam_beta2 adam_beta3 adam_epsilon adam_epsilon2 learning_rate lr_* embedding_lr* "
          "min_lr* cosine_* warmup_* weight_decay max_grad_norm label_smoothing_* loss_watchdog_* sft_alpha "
          "scheduler* seed data_seed ",
          "values of the update")
      .read("eval_strategy", "model.evaluate_every", facts::eval_when, "steps=steps epoch=epoch no=no", "")
      .read("evaluation_strategy", "model.evaluate_every", facts::eval_when, "steps=steps epoch=epoch no=no",
            "its name before 4.41")
      .read("eval_steps", "model.evaluate_every", whole, "with eval_strategy steps; 500 where it isn't given")
      .read("per_device_eval_batch_size", "model.evaluation_micro_batch", whole, "8 where it isn't given")
      .read("eval_accumulation_steps", "model.evaluation_flush", whole)
      .as_modelled("prediction_loss_only",
                   "losses alone are kept; a program's compute_metrics keeps logits: model.evaluation_keeps")
      .no_effect(
          "output_dir overwrite_output_dir do_train do_eval do_predict num_train_epochs num_epochs max_steps "
          "max_train_* max_eval_* eval_* evaluation_* evals_* val_* test_* metric_* greater_is_better "
          "load_best_model_at_end prediction_* per_gpu_eval_batch_size "
          "save_* saves_* checkpointing_steps with_tracking hub_* push_to_hub* resume_* auto_resume_* restore_* "
          "ignore_data_skip "
          "logging_* log_* report_to run_name disable_tqdm wandb_* mlflow_* comet_* tensorboard_* use_tensorboard "
          "swanlab_* trackio_* skip_memory_metrics include_* debug strict early_stopping_* plot_loss do_bench_eval "
          "jit_mode_eval past_index project profiler_* profile_* use_wandb use_mlflow generate_samples",
          "logging and saving are not in a step")
      .no_effect(
          "train_file validation_file dataset_* datasets datasets.* data_* dataset preprocessing_* max_samples "
          "test_datasets test_datasets.* template chat_* special_tokens special_tokens.* tokens.* "
          "added_tokens_overrides.* tokens "
          "tokenizer_* tokenizer use_fast_tokenizer use_slow_tokenizer train_on_* default_system_message roles_* "
          "shuffle_* "
          "dataloader_* remove_unused_columns label_names completion_only_loss assistant_only_loss "
          "length_column_name overwrite_cache train_split test_split config_name model_type "
          "base_model_config model_revision revision_of_model trust_remote_code token cache_dir use_auth_token "
          "is_llama_derived_model is_mistral_derived_model is_falcon_derived_model eot_tokens "
          "streaming streaming_* pretraining_dataset pretraining_dataset.* torchdistx_path use_swanlab "
          "mix_strategy interleave_probs preprocessing_num_workers type_of_model "
          "curriculum_sampling sample_packing_* eval_sample_packing excess_length_strategy",
          "data come in time, and which files they are doesn't matter")
      .no_effect(
          "local_rank ddp_find_unused_parameters ddp_timeout* ddp_backend ddp_broadcast_buffers "
          "use_cpu no_cuda use_mps_device xpu_backend tpu_* accelerator_config accelerator_config.* "
          "average_tokens_across_devices batch_eval_metrics mp_parameters gc_steps env.*",
          "of the start, or of evaluation");
}

// Under both names: in accelerate's file with the prefix fsdp_, in TrainingArguments' fsdp_config without.
void sharding(FlagRows& rows, std::string_view section, bool has_prefix) {
  const auto name = [&](std::string_view plain) {
    return std::string(section) + (has_prefix ? "fsdp_" : "") + std::string(plain);
  };
  const bool is_said = section.empty();
  const auto row = [&](std::string_view plain, std::string_view key, std::string_view fact, std::string_view values,
                       std::string_view note) {
    const std::string flag = name(plain);
    if (is_said)
      rows.say(flag, key, fact, values, note);
    else
      rows.read(flag, key, fact, values, note);
  };
  row("sharding_strategy", "model.zero_stage", facts::sharding,
      "FULL_SHARD=3 SHARD_GRAD_OP=2 NO_SHARD=0 HYBRID_SHARD=hybrid HYBRID_SHARD_ZERO2=hybrid2 1=3 2=2 3=0 4=hybrid "
      "5=hybrid2",
      "");
  row("offload_params", "model.optimizer_device", facts::offload_everything, if_on, "and model.weight_device");
  row("backward_prefetch", "model.late_prefetch", "model.late_prefetch", backward_prefetch, "");
  rows.read(name("reshard_after_forward"), "model.zero_stage", facts::reshard,
            "true=3 false=2 FULL_SHARD=3 SHARD_GRAD_OP=2 NO_SHARD=0 HYBRID_SHARD=hybrid", "FSDP 2");
  rows.read(name("version"), "model.zero_stage", facts::fsdp_version, whole, "");
  rows.read(name("activation_checkpointing"), "model.recompute", "true=full false=-", "");
  rows.no_effect(name("auto_wrap_policy") + " " + name("transformer_layer_cls_to_wrap") + " " +
                     name("use_orig_params") + " " + name("sync_module_states"),
                 "one unit per layer is assumed, whatever it is called");
  rows.read(name("cpu_ram_efficient_loading"), "model.loading", "true=first false=each", "");
  for (const char* key : {"state_dict_type", "final_state_dict_type"})
    rows.read(name(key), "model.saving", facts::whole_save,
              "FULL_STATE_DICT=first SHARDED_STATE_DICT=- LOCAL_STATE_DICT=-", "under stage 3");
  rows.as_modelled_if(name("forward_prefetch"), "false", "the host runs ahead of the device anyway")
      .or_else(FlagRole::adds);
  rows.as_modelled_if(name("limit_all_gathers"), "true", "weights are gathered model.prefetch layers ahead")
      .or_else(FlagRole::adds);
  rows.not_said(name("min_num_params"), "one unit per layer is assumed");
}

void starting(FlagRows& rows) {
  rows.say("num_processes", "model.data_parallel", facts::gpus, whole, "over the other parallel sizes")
      .say("mixed_precision", "model.precision", "bf16=bf16_mixed fp16=fp16_mixed fp8=fp8_mixed no=-", "")
      .say("use_fsdp", "model.zero_stage", facts::fsdp, "true=3 false=-", "")
      .read("distributed_type", "model.zero_stage", facts::fsdp, "FSDP=3 MULTI_GPU=- NO=- DEEPSPEED=- MEGATRON_LM=-",
            "")
      .read("zero_stage", "model.zero_stage", whole, "")
      .read("gradient_accumulation_steps", "model.gradient_accumulation", whole, "")
      .read("offload_optimizer_device", "model.optimizer_device", "cpu=cpu nvme=drives none=gpu", "")
      .read("offload_param_device", "model.weight_device", "cpu=cpu nvme=drives none=gpu", "with stage 3")
      .read("dynamo_backend", "model.compile", "inductor=true no=-", "")
      .read("parallelism_config_tp_size", "model.tensor_parallel", whole, "")
      .read("parallelism_config_cp_size", "model.context_parallel", whole, "")
      .read("parallelism_config_dp_replicate_size", "model.data_parallel", facts::replicas, whole, "")
      .read("parallelism_config_dp_shard_size", "model.data_parallel", facts::shards, whole, "")
      .read("megatron_lm_tp_degree", "model.tensor_parallel", whole, "")
      .read("megatron_lm_pp_degree", "model.pipeline_parallel", whole, "")
      .read("megatron_lm_sequence_parallelism", "model.sequence_parallel", on_off, "")
      .file("config_file", LaunchFormat::accelerate, "accelerate's YAML file")
      .file("deepspeed_config_file", LaunchFormat::deepspeed, "DeepSpeed's JSON file")
      .say("num_cpu_threads_per_process", "model.host_threads", whole, "of the optimizer on the CPU")
      .read("zero3_save_16bit_model", "model.saving", facts::whole_save, "true=first false=-", "under stage 3")
      .read("deepspeed_moe_layer_cls_names", "model.leaf_modules", facts::leaf_classes, "",
            "any: a layer's experts are gathered together")
      .as_modelled("multi_gpu use_deepspeed", "by the number of processes")
      .time("dynamo_mode dynamo_use_fullgraph dynamo_use_dynamic dynamo_use_regional_compilation",
            "the compiler's own choices are not modelled")
      .not_said("fp8_config.* megatron_lm_* use_megatron_lm parallelism_config_* fsdp_*", "not said in a scenario")
      .no_effect(
          "num_machines machine_rank main_process_ip main_process_port main_training_function compute_environment "
          "debug downcast_bf16 rdzv_backend same_network gpu_ids use_cpu tpu_* enable_cpu_affinity "
          "deepspeed_multinode_launcher zero3_init_flag "
          "deepspeed_hostfile gradient_clipping offload_*_nvme_path "
          "max_restarts role log_dir tee ipex_config.* mpirun_config.* main_process main_process_* monitor_interval "
          "rdzv_conf module no_python quiet standalone",
          "of the start, not of a step");
}

}  // namespace

std::vector<LaunchFlag> huggingface_flags() {
  FlagRows arguments(LaunchFormat::hf);
  huggingface_training(arguments);
  factory_plugins(arguments);
  adapters(arguments);
  training_left_out(arguments);
  sharding(arguments, "fsdp_config.", false);
  sharding(arguments, "fsdp_config.", true);
  FlagRows starts(LaunchFormat::accelerate);
  sharding(starts, "", true);
  starting(starts);
  std::vector<LaunchFlag> all = arguments.take();
  for (LaunchFlag& row : starts.take()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
