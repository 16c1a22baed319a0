// Keys of GPT-NeoX's YAML files (megatron/neox_arguments), beside DeepSpeed's.
#include "launch/flag_rows.h"

namespace spillway::launch {

std::vector<LaunchFlag> neox_flags() {
  constexpr std::string_view name = "model.name";
  FlagRows rows(LaunchFormat::neox);
  rows.read("pipe_parallel_size", "model.pipeline_parallel", "0=- #")
      .read("model_parallel_size", "model.tensor_parallel", whole)
      .read("sequence_parallel", "model.sequence_parallel", on_off)
      .read("context_parallel_size", "model.context_parallel", whole)
      .read("seq_length", "model.sequence", whole)
      .read("precision", "model.precision", "bfloat16=bf16_mixed fp16=fp16_mixed fp32=fp32")
      .read("checkpoint_activations", "model.recompute", "true=full false=-")
      .read("checkpoint_num_layers", "model.recompute_every", facts::recompute_every, whole, "")
      .read("attention_config", "model.flash_attention", facts::attention_backend, "*flash*=flash2 *global*=none", "")
      .read("num_layers", name, facts::layers, whole, "")
      .read("hidden_size", name, facts::hidden, whole, "")
      .read("intermediate_size", name, facts::feed_forward, whole, "")
      .read("num_attention_heads", name, facts::heads, whole, "")
      .read("num_kv_heads", name, facts::kv_heads, whole, "")
      .read("max_position_embeddings", name, facts::max_positions, whole, "")
      .read("padded_vocab_size", name, facts::padded_vocabulary, whole, "")
      .read("norm", name, facts::norm,
            "layernorm=layer_norm rmsnorm=rms_norm te_rmsnorm=rms_norm te_layernorm=layer_norm", "")
      .read("pos_emb", name, facts::positions, "rotary=rotary learned=learned alibi=alibi", "")
      .read("no_weight_tying", name, facts::untied, if_on, "")
      .read("gpt_j_residual", name, facts::parallel_blocks, if_on, "")
      .read("activation", name, facts::activation, "gelu=- swiglu=silu_gated geglu=gelu_gated relu=relu", "")
      .read("use_bias_in_attn_linear", name, facts::no_bias, "true=- false=true", "")
      .read("hidden_dropout", "model.dropout", facts::hidden_dropout, "", "")
      .read("attention_dropout", "model.dropout", facts::attention_dropout, "", "")
      .as_modelled("bias_gelu_fusion layernorm_fusion scaled_upper_triang_masked_softmax_fusion rope_fusion",
                   "fused kernels")
      .as_modelled_if("output_layer_parallelism", "column", "")
      .as_modelled_if("is_pipe_parallel", "true", "")
      .saves("partition_activations checkpoint_in_cpu contiguous_checkpointing",
             "kept inputs are split or moved: lowers memory")
      .not_said(
          "moe_* num_experts sparsity_config.* mamba_* use_qk_layernorm gpt_j_tied gmlp_* use_bias_in_mlp "
          "attention_type sliding_window_width te_* use_bnb_optimizer fp32_allreduce mlp_multiple_of",
          "layers that are modelled one way")
      .no_effect(
          "make_vocab_size_divisible_by rotary_* use_bias_in_norms decay_lr_to comment expansion_factor init_method* "
          "output_layer_init_method "
          "scaled_init layernorm_epsilon rms_norm_epsilon norm_epsilon "
          "data_path train_data_paths valid_data_paths test_data_paths train_data_weights valid_data_weights "
          "test_data_weights data_impl vocab_file merge_file "
          "tokenizer_type tokenizer.* save load save_* load_* checkpoint_factor checkpoint_validation* train_iters "
          "lr_decay_* warmup* lr* min_lr weight_decay split num_workers distributed_backend log_* eval_* "
          "keep_last_n_checkpoints steps_per_print tensorboard_dir tensorboard_* use_wandb wandb_* launcher "
          "deepspeed_* hostfile include num_nodes num_gpus master_* finetune seed attention_softmax_in_fp32 "
          "mmap_warmup reset_attention_mask eod_mask_loss git_hash text_gen_type synchronize_each_layer "
          "extra_save_iters use_shared_fs s3_* clip_grad pack_impl train_impl allow_chopped label_smoothing "
          "override_lr_scheduler use_checkpoint_lr_scheduler",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace spillway::launch
