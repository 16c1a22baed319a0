// NVIDIA's programs on Megatron-core and PyTorch: Megatron-Bridge's recipes (scripts/training/run_recipe.py), NeMo 1's
// YAML (examples/nlp/language_modeling/conf/megatron_gpt_config.yaml), NeMo AutoModel's YAML (2025 to 2026).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

std::vector<LaunchFlag> bridge_rows() {
  FlagRows rows(LaunchFormat::bridge);
  rows.read("recipe", "model.name", facts::recipe, "", "a recipe's function, of which the model's name is read alone")
      .saves("peft_scheme peft", "set model.trainable yourself (docs/internals/models.md)")
      .no_effect("dataset step_func mode task config_file config_dir", "of the start, or of the data");
  return rows.take();
}

std::vector<LaunchFlag> nemo1_rows() {
  constexpr std::string_view name = "model.name";
  FlagRows rows(LaunchFormat::nemo1);
  rows.read("trainer.devices", "model.data_parallel", facts::gpus_per_node, whole, "over the other parallel sizes")
      .read("trainer.num_nodes", "model.data_parallel", facts::nodes, whole, "")
      .read("trainer.precision", "model.precision",
            "bf16=bf16_mixed bf16-mixed=bf16_mixed bf16_mixed=bf16_mixed 16=fp16_mixed 16-mixed=fp16_mixed 32=fp32 "
            "32-true=fp32")
      .read("model.optim.name", "model.zero_stage",
            "distributed_fused_adam=1 mcore_distributed_optim=1 fused_adam=0 megatron_fused_adam=0 adamw=0 adam=0")
      .read("model.encoder_seq_length", "model.sequence", whole)
      .read("model.data.seq_length", "model.sequence", whole)
      .read("model.data.train_ds.max_seq_length", "model.sequence", whole, "of fine-tuning")
      .read("model.data.train_ds.micro_batch_size", "model.micro_batch", whole, "of fine-tuning")
      .read("model.data.train_ds.global_batch_size", "model.global_batch", whole, "of fine-tuning")
      .read("model.activations_checkpoint_granularity", "model.recompute", "full=full selective=selective")
      .read("model.activations_checkpoint_method", "model.recompute_layers", facts::recompute_method,
            "uniform=uniform block=block", "")
      .read("model.activations_checkpoint_num_layers", "model.recompute_layers", facts::recompute_count, whole, "")
      .read("model.normalization", name, facts::norm,
            "rmsnorm=rms_norm layernorm=layer_norm layernorm1p=layer_norm low_precision_layernorm=layer_norm", "")
      .read("model.activation", name, facts::activation,
            "gelu=- swiglu=silu_gated fast-swiglu=silu_gated geglu=gelu_gated fast-geglu=gelu_gated squared-relu=relu",
            "")
      .read("model.bias", name, facts::no_bias, "true=- false=true", "")
      .read("model.use_flash_attention", "model.flash_attention", on_off)
      .read("model.fp8_e4m3", "model.precision", facts::fp8, "true=fp8_mixed false=-", "")
      .read("model.fp8_hybrid", "model.precision", facts::fp8, "true=fp8_mixed false=-", "")
      .read("model.fp8", "model.precision", facts::fp8, "true=fp8_mixed false=-", "")
      .read("model.fsdp", "model.zero_stage", facts::fsdp, "true=3 false=-", "")
      .read("model.fsdp_sharding_strategy", "model.zero_stage", facts::sharding, "full=3 grad=2 hybrid=hybrid", "")
      .as_modelled_if("model.transformer_block_type", "pre_ln", "")
      .as_modelled_if("model.attention_type", "multihead", "")
      .as_modelled_if("model.megatron_amp_o2", "true", "weights in 16 bits, masters in fp32")
      .as_modelled_if("model.transformer_engine", "true", "")
      .as_modelled_if("model.mcore_gpt", "true", "")
      .as_modelled_if("trainer.accumulate_grad_batches", "1", "micro-batches are the global batch's")
      .read("model.peft.peft_scheme", "model.trainable", facts::adapter, "lora=lora none=none", "")
      .or_else(FlagRole::saves)
      .read("model.peft.lora_tuning.adapter_dim", "model.lora_rank", whole)
      .read("model.peft.lora_tuning.adapter_dropout", "model.lora_dropout", "")
      .read("model.peft.lora_tuning.target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .as_modelled_if("model.peft.lora_tuning.variant", "nemo", "")
      .no_effect(
          "model.peft.restore_from_* model.peft.lora_tuning.alpha model.peft.lora_tuning.*_init_method "
          "model.peft.p_tuning.* model.peft.adapter_tuning.* model.peft.ia3_tuning.* model.peft.selective_tuning.*",
          "a value, or of another scheme")
      .not_said("model.peft.*", "which products have adapters is modelled one way")
      .time("model.ub_tp_comm_* model.nsys_profile.*", "transfers run as without it")
      .not_said("model.mcore_customization_config.* model.fsdp_* model.drop_layers",
                "layers and their sharding are modelled one way")
      .adds("model.num_micro_batches_with_partial_activation_checkpoints model.activations_checkpoint_layers_*",
            "lowers memory less than recomputing every layer does")
      .no_effect(
          "name restore_from_path exp_manager exp_manager.* trainer.* hydra.* run.* cluster.* model.optim.* "
          "model.data.* model.tokenizer.* "
          "model.resume_* model.restore_* model.gradient_as_bucket_view model.grad_div_ar_fusion "
          "model.grad_allreduce_chunk_size_mb model.rotary_percentage model.native_amp_* model.hysteresis "
          "model.nccl_communicator_config_path model.pre_process model.post_process "
          "model.precision model.fp8_margin model.fp8_interval model.fp8_amax_* model.use_emha model.sync_batch_comm "
          "model.gc_interval model.use_scaled_init_method model.ffn_dropout "
          "model.do_layer_norm_weight_decay model.headscale "
          "model.normalize_attention_scores model.bias_dropout_add_fusion model.get_attention_mask_from_fusion "
          "model.apex_transformer_log_level model.reduce_amax model.seq_len_interpolation_factor "
          "model.scale_positional_embedding model.reset_lr model.reset_lr_steps model.validation_param_sync_overlap "
          "model.sharp model.enable_megatron_timers model.megatron_timer_kwargs.* model.name "
          "defaults s3_checkpointing.* "
          "model.answer_only_loss model.save_nemo_on_train_end",
          "of the run, of the data, or a value");
  return rows.take();
}

void automodel_layout(FlagRows& rows) {
  rows.read("distributed.strategy", "model.zero_stage", facts::sharding, "fsdp2=- megatron_fsdp=3 ddp=0", "")
      .read("distributed.reshard_after_forward", "model.zero_stage", facts::reshard, "true=3 false=2 none=-", "")
      .read("distributed.zero_dp_strategy", "model.zero_stage", facts::reshard, "3=3 2=2 1=1 0=0", "of megatron_fsdp")
      .read("distributed.grad_reduce_in_fp32", "model.fp32_reduction", facts::reduce_type, on_off, "of megatron_fsdp")
      .read("distributed.overlap_grad_reduce", "model.overlap_gradients", on_off)
      .time("distributed.overlap_param_gather", "the gather of updated weights is counted as not hidden")
      .read("distributed.tp_size", "model.tensor_parallel", "none=- #")
      .read("distributed.cp_size", "model.context_parallel", "none=- #")
      .read("distributed.pp_size", "model.pipeline_parallel", "none=- #")
      .read("distributed.ep_size", "model.expert_parallel", "none=- #")
      .read("distributed.dp_size", "model.data_parallel", "none=- #")
      .read("distributed.dp_replicate_size", "model.shard_groups", "none=- 1=- #", "copies of what is sharded")
      .read("distributed.sequence_parallel", "model.sequence_parallel", on_off)
      .read("distributed.activation_checkpointing", "model.recompute", "true=full full=full false=none")
      .read("distributed.defer_fsdp_grad_sync", "model.late_reduction", on_off)
      .read("distributed.mp_policy.reduce_dtype", "model.fp32_reduction", facts::reduce_type,
            "float32=true torch.float32=true bfloat16=false torch.bfloat16=false", "")
      .read("distributed.offload_policy._target_", "model.optimizer_device", facts::offload_everything,
            "*.cpuoffloadpolicy=true", "and model.weight_device")
      .read("distributed.pipeline.pp_microbatch_size", "model.micro_batch", facts::pass_batch, whole, "with a pipeline")
      .read("distributed.pipeline.pp_schedule", "model.pipeline_schedule",
            "1f1b=1f1b gpipe=gpipe interleaved1f1b=interleaved zbvzerobubble=zb-v dualpipev=dualpipe-v")
      .not_said("distributed.pipeline.*", "layers are shared out evenly over the stages")
      .not_said("distributed.moe.* distributed.*", "how state is shared out is modelled one way");
}

std::vector<LaunchFlag> automodel_rows() {
  FlagRows rows(LaunchFormat::automodel);
  automodel_layout(rows);
  rows.read("model.pretrained_model_name_or_path", "model.name", facts::model, "", "")
      .read("model.config.pretrained_model_name_or_path", "model.name", facts::model, "", "of training from the start")
      .read("model.torch_dtype", "model.precision",
            "bf16=bf16 bfloat16=bf16 torch.bfloat16=bf16 fp32=bf16_mixed float32=bf16_mixed torch.float32=bf16_mixed",
            "weights as they are loaded, with no copy in fp32")
      .read("model.attn_implementation", "model.flash_attention", facts::attention_backend,
            "sdpa=best flash_attention_2=flash2 flash_attention_3=best te=best eager=none",
            "and model.attention_kernel")
      .read("model.use_liger_kernel", "model.loss", "true=chunked false=-")
      .read("model.backend.attn", "model.flash_attention", facts::attention_backend, "te=best sdpa=best", "")
      .as_modelled_if("model.backend.dispatcher", "torch none", "tokens travel by all-to-all")
      .as_modelled_if("model.backend.enable_deepep", "false", "tokens travel by all-to-all")
      .time("model.backend.linear model.backend.rms_norm", "kernels that are not modelled: changes time")
      .read("compile.enabled", "model.compile", on_off)
      .read("step_scheduler.local_batch_size", "model.micro_batch", whole)
      .read("step_scheduler.global_batch_size", "model.global_batch", whole)
      .read("dataset.seq_length", "model.sequence", "none=- #")
      .read("dataset.seq_len", "model.sequence", "none=- #")
      .read("packed_sequence.packed_sequence_size", "model.sequence", facts::packed, "0=- none=- #", "")
      .read("loss_fn._target_", "model.loss",
            "*.maskedcrossentropy=native *.fusedlinearcrossentropy=chunked *.teparallelcrossentropy=fused "
            "*.chunkedcrossentropy=chunked")
      .read(
          "optimizer._target_", "model.optimizer",
          "torch.optim.adamw=adamw torch.optim.adam=adam torch.optim.sgd=sgd *.fusedadam=adamw *.adamw8bit=adamw_8bit")
      .read("optimizer.fused", "model.optimizer_form", "true=fused false=foreach")
      .as_modelled_if("optimizer.foreach", "true", "PyTorch's default")
      .or_else(FlagRole::time)
      .read("peft._target_", "model.trainable", facts::adapter, "*.peftconfig=lora", "")
      .read("peft.dim", "model.lora_rank", whole)
      .read("peft.dropout", "model.lora_dropout", "")
      .read("peft.match_all_linear", "model.lora_targets", facts::adapter_modules, "true=all-linear false=-", "")
      .read("peft.target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .read("quantization.load_in_4bit", "model.base_weights", facts::base_bits, "true=4 false=-", "")
      .read("quantization.load_in_8bit", "model.base_weights", facts::base_bits, "true=8 false=-", "")
      .read("quantization.bnb_4bit_use_double_quant", "model.base_weights", facts::double_quant, on_off, "")
      .as_modelled_if("quantization.bnb_4bit_quant_type", "nf4", "")
      .adds("peft.use_dora optimizer.master_weights optimizer.exp_avg_dtype optimizer.exp_avg_sq_dtype",
            "raises memory")
      .not_said("peft.* quantization.*", "which products have adapters is modelled one way")
      .read("parallelizer.activation_checkpointing", "model.recompute", "true=full false=none")
      .not_said("parallelizer.*", "how state is shared out is modelled one way")
      .time("compile.*", "the compiler's own choices are not modelled")
      .not_said("fp8.* model.backend.* model.quantization_config.* qat.*", "kernels that are not modelled")
      .no_effect(
          "recipe seed model._target_ model.config._target_ model.config.trust_remote_code model.backend._target_ "
          "model.trust_remote_code model.force_hf model.cache_dir model.revision "
          "model.use_cache peft.alpha peft.use_triton peft.lora_*_init quantization.bnb_4bit_compute_dtype "
          "step_scheduler.* dist_env.* checkpoint.* "
          "loss_fn.* optimizer.* lr_scheduler.* dataset.* dataloader.* validation_dataset.* validation_dataloader.* "
          "packed_sequence.* tokenizer.* rng.* wandb.* mlflow.* ci.* benchmark.* clip_grad_norm.* "
          "logger.* slurm.* nvtx tool_call_eval.*",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> nvidia_flags() {
  std::vector<LaunchFlag> all = bridge_rows();
  for (auto* part : {&nemo1_rows, &automodel_rows})
    for (LaunchFlag& row : (*part)()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
