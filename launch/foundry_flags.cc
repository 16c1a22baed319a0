// Keys of llm-foundry's YAML files for Composer (scripts/train/yamls).
#include "launch/flag_rows.h"

namespace spillway::launch {

std::vector<LaunchFlag> foundry_flags() {
  constexpr std::string_view name = "model.name";
  FlagRows rows(LaunchFormat::foundry);
  rows.read("max_seq_len", "model.sequence", whole)
      .read("device_train_microbatch_size", "model.micro_batch", whole)
      .read("global_train_batch_size", "model.global_batch", whole)
      .read("precision", "model.precision", "amp_bf16=bf16_mixed amp_fp16=fp16_mixed fp32=fp32")
      .as_modelled_if("optimizer.name", "decoupled_adamw adamw", "AdamW")
      .read("fsdp_config.sharding_strategy", "model.zero_stage", facts::sharding,
            "FULL_SHARD=3 SHARD_GRAD_OP=2 NO_SHARD=0 HYBRID_SHARD=hybrid", "")
      .read("fsdp_config.mixed_precision", "model.fp32_reduction", facts::reduce_type, "DEFAULT=true PURE=false",
            "PURE: gradients are reduced in 16 bits")
      .read("fsdp_config.activation_checkpointing", "model.recompute", "true=full false=none")
      .read("fsdp_config.activation_cpu_offload", "offload.technique", "true=checkpoints false=-", "to host memory")
      .read("model.pretrained_model_name_or_path", name, facts::model, "", "")
      .read("model.d_model", name, facts::hidden, whole, "")
      .read("model.n_heads", name, facts::heads, whole, "")
      .read("model.n_layers", name, facts::layers, whole, "")
      .read("model.max_seq_len", name, facts::max_positions, whole, "")
      .read("model.vocab_size", name, facts::vocabulary, whole, "")
      .read("model.no_bias", name, facts::no_bias, if_on, "")
      .read("model.tie_word_embeddings", name, facts::untied, "true=- false=true", "")
      .read("model.norm_type", name, facts::norm,
            "low_precision_layernorm=layer_norm layernorm=layer_norm rmsnorm=rms_norm", "")
      .read("model.attn_config.kv_n_heads", name, facts::kv_heads, whole, "")
      .read("model.attn_config.alibi", name, facts::positions, "true=alibi false=-", "")
      .read("model.attn_config.rope", name, facts::positions, "true=rotary false=-", "")
      .read("model.attn_config.attn_impl", "model.flash_attention", facts::attention_backend,
            "flash=flash2 triton=triton torch=none", "and model.attention_kernel")
      .as_modelled_if("model.expansion_ratio", "4", "")
      .as_modelled_if("model.name", "mpt_causal_lm hf_causal_lm", "a decoder, by what stands beside it")
      .not_said("model.ffn_config.* model.attn_config.*", "layers that are modelled one way")
      .saves("model.peft_config.*", "set model.trainable yourself (docs/internals/models.md): adapters lower memory")
      .not_said("fsdp_config.activation_checkpointing_* fsdp_config.*", "how state is shared out is modelled one way")
      .time("te_* compile_config.*", "kernels that are not modelled")
      .read("expandable_segments", "memory.config", facts::allocator_settings, "true=expandable_segments:True false=-",
            "")
      .read("model.loss_fn", "model.loss", "fused_crossent=fused torch_crossent=native")
      .no_effect(
          "variables.* dataset.* fsdp_config.verbose fsdp_config.limit_all_gathers "
          "fsdp_config.sync_module_states "
          "fsdp_config.backward_prefetch fsdp_config.use_orig_params fsdp_config.state_dict_type "
          "fsdp_config.activation_checkpointing_reentrant fsdp_config.load_* "
          "model.init_device model.pretrained model.use_auth_token model.init_config.* model.verbose model.use_cache "
          "model.trust_remote_code tokenizer.* train_loader.* eval_loader.* eval_loaders scheduler.* "
          "optimizer.lr optimizer.betas optimizer.eps optimizer.weight_decay "
          "algorithms.* max_duration eval_* seed global_seed device_eval_batch_size progress_bar log_* callbacks.* "
          "loggers.* save_* load_* run_name data_local data_remote global_* autoresume console_log_interval "
          "dist_timeout "
          "python_log_level icl_* tokenizer_name",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace spillway::launch
