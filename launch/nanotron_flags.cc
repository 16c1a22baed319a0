// Keys of nanotron's YAML file (huggingface/nanotron, src/nanotron/config, 2024 to 2025).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

void nanotron_layout(FlagRows& rows) {
  rows.read("parallelism.dp", "model.data_parallel", whole)
      .read("parallelism.tp", "model.tensor_parallel", whole)
      .read("parallelism.pp", "model.pipeline_parallel", whole)
      .read("parallelism.context_parallel_size", "model.context_parallel", whole)
      .read("parallelism.pp_engine", "model.pipeline_schedule", "1f1b=1f1b afab=gpipe",
            "all forward, all backward: gpipe")
      .read("parallelism.tp_mode", "model.sequence_parallel", "reduce_scatter=true all_reduce=false")
      .read("parallelism.recompute_layer", "model.recompute", "true=full false=none")
      .read("parallelism.recompute_granularity", "model.recompute", "full=full selective=selective",
            "its name until 2024")
      .read("optimizer.zero_stage", "model.zero_stage", whole, "0 or 1")
      .read("model.ddp_bucket_cap_mb", "model.bucket_bytes", facts::bucket_mib, whole, "MiB")
      .as_modelled_if("parallelism.expert_parallel_size", "1", "experts are shared out within the replicas otherwise")
      .as_modelled_if("parallelism.tp_recompute_allgather", "false",
                      "inputs of column-split layers are kept as they were gathered")
      .or_else(FlagRole::saves)
      .as_modelled_if("parallelism.tp_linear_async_communication", "false",
                      "transfers of a tensor group are waited for")
      .or_else(FlagRole::time)
      .as_modelled_if("parallelism.moe_layer_recompute", "false", "")
      .or_else(FlagRole::saves);
}

void nanotron_training(FlagRows& rows) {
  rows.read("tokens.sequence_length", "model.sequence", whole)
      .read("tokens.micro_batch_size", "model.micro_batch", whole)
      .read("tokens.batch_accumulation_per_replica", "model.gradient_accumulation", whole)
      .read("model.dtype", "model.precision", facts::weights_type, "bfloat16=- float32=fp32", "")
      .read("optimizer.accumulate_grad_in_fp32", "model.precision", "true=bf16_mixed false=bf16",
            "with weights in fp32 beside those in 16 bits")
      .read("optimizer.optimizer_factory.name", "model.optimizer", "adamW=adamw sgd=sgd")
      .read("optimizer.optimizer_factory.torch_adam_is_fused", "model.optimizer_form", "true=fused false=foreach");
}

void nanotron_model(FlagRows& rows) {
  const std::string_view key = "model.name";
  rows.read("model.model_config.num_hidden_layers", key, facts::layers, whole, "")
      .read("model.model_config.hidden_size", key, facts::hidden, whole, "")
      .read("model.model_config.intermediate_size", key, facts::feed_forward, whole, "")
      .read("model.model_config.num_attention_heads", key, facts::heads, whole, "")
      .read("model.model_config.num_key_value_heads", key, facts::kv_heads, whole, "")
      .read("model.model_config.vocab_size", key, facts::vocabulary, whole, "padded")
      .read("model.make_vocab_size_divisible_by", key, facts::vocabulary_multiple, whole, "times tp")
      .read("model.model_config.max_position_embeddings", key, facts::max_positions, whole, "")
      .read("model.model_config.tie_word_embeddings", key, facts::untied, "true=false false=true", "")
      .read("model.model_config.attention_bias", key, facts::qkv_bias, "true=true false=-", "")
      .read("model.model_config.hidden_act", key, facts::activation, "silu=silu_gated gelu=gelu_gated", "")
      .read("model.model_config.sliding_window_size", key, facts::window, "", "")
      .read("model.model_config._attn_implementation", "model.flash_attention", facts::attention_backend,
            "flash_attention_2=flash2 sdpa=best", "and model.attention_kernel")
      .read("model.model_config.moe_config.num_experts", key, facts::experts, whole, "")
      .read("model.model_config.moe_config.top_k", key, facts::active_experts, whole, "")
      .read("model.model_config.moe_config.moe_intermediate_size", key, facts::expert_width, whole, "")
      .read("model.model_config.is_starcoder2_config", key, facts::other_kind, "true=true false=-", "needs --model")
      .as_modelled_if("model.model_config.is_llama_config", "true",
                      "a decoder with rotary positions and gated products")
      .as_modelled_if("model.model_config.is_qwen2_config", "true",
                      "a decoder with rotary positions and gated products")
      .as_modelled_if("model.model_config.moe_config.layers", "-1", "every layer has experts")
      .as_modelled_if("model.model_config.moe_config.enable_shared_expert", "false", "")
      .as_modelled_if("model.model_config.moe_config.token_dispatcher_type", "alltoall", "")
      .as_modelled_if("model.model_config.z_loss_enabled", "false", "")
      .or_else(FlagRole::time)
      .as_modelled_if("model.model_config._fused_rotary_emb", "true", "")
      .as_modelled_if("model.model_config._fused_rms_norm", "true", "")
      .time("model.model_config.flex_attention_mask model.model_config._use_doc_masking",
            "attention sees the whole sequence before it")
      .not_said("model.model_config.moe_config.*", "what else experts have is modelled one way");
}

void nanotron_ignored(FlagRows& rows) {
  rows.no_effect(
          "model.model_config.bos_token_id model.model_config.eos_token_id model.model_config.pad_token_id "
          "model.model_config.initializer_range model.model_config.pretraining_tp model.model_config.rms_norm_eps "
          "model.model_config.rope_* model.model_config.no_rope_layer model.model_config.use_cache "
          "model.model_config.z_loss_coefficient model.model_config._use_qkv_packed model.init_method.*",
          "values, not sizes")
      .no_effect(
          "optimizer.clip_grad optimizer.weight_decay* optimizer.learning_rate_scheduler.* "
          "optimizer.optimizer_factory.adam_*",
          "values of the update")
      .no_effect("tokens.train_steps tokens.limit_val_batches tokens.limit_test_batches general general.*",
                 "of the run, not of a step")
      .as_modelled_if("tokens.val_check_interval", "-1", "no evaluation between steps")
      .or_else(FlagRole::adds)
      .no_effect("checkpoints checkpoints.* s3_upload s3_upload.*", "checkpoints are between steps")
      .no_effect("data_stages data_stages.* tokenizer tokenizer.*", "data come in time")
      .no_effect("logging logging.* lighteval lighteval.* profiler profiler.* metrics_logging metrics_logging.*",
                 "logging is not in a step");
}

}  // namespace

std::vector<LaunchFlag> nanotron_flags() {
  FlagRows rows(LaunchFormat::nanotron);
  nanotron_layout(rows);
  nanotron_training(rows);
  nanotron_model(rows);
  nanotron_ignored(rows);
  return rows.take();
}

}  // namespace spillway::launch
