// Supervised training of OpenRLHF (openrlhf/cli/train_sft.py; dotted flags since 2026) and of verl
// (verl/trainer/config/sft_trainer.yaml).
#include <string>

#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

std::vector<LaunchFlag> openrlhf_rows() {
  FlagRows rows(LaunchFormat::openrlhf);
  // Under its dotted name, and the one before 2026.
  const auto both = [&](std::string_view dotted, std::string_view before, std::string_view key, std::string_view fact,
                        std::string_view values) {
    rows.read(dotted, key, fact, values, "").read(before, key, fact, values, "before 2026");
  };
  const auto key_of = [&](std::string_view dotted, std::string_view before, std::string_view key,
                          std::string_view values) { both(dotted, before, key, key, values); };
  both("model.model_name_or_path", "pretrain", "model.name", facts::model, "");
  key_of("train.micro_batch_size", "micro_train_batch_size", "model.micro_batch", whole);
  key_of("train.batch_size", "train_batch_size", "model.global_batch", whole);
  key_of("data.max_len", "max_len", "model.sequence", whole);
  key_of("ds.zero_stage", "zero_stage", "model.zero_stage", whole);
  key_of("ds.adam_offload", "adam_offload", "model.optimizer_device", "true=cpu false=-");
  key_of("ds.param_dtype", "param_dtype", "model.precision", "bf16=bf16_mixed fp16=fp16_mixed");
  key_of("ds.overlap_comm", "overlap_comm", "model.overlap_gradients", on_off);
  key_of("ds.tensor_parallel_size", "ds_tensor_parallel_size", "model.tensor_parallel", whole);
  key_of("ds.ring_attn_size", "ring_attn_size", "model.context_parallel", whole);
  key_of("ds.use_liger_kernel", "use_liger_kernel", "model.loss", "true=chunked false=-");
  key_of("model.gradient_checkpointing_enable", "gradient_checkpointing", "model.recompute", "true=full false=none");
  both("ds.attn_implementation", "attn_implementation", "model.flash_attention", facts::attention_backend,
       "flash_attention_2=flash2 flash_attention_3=best sdpa=best eager=none");
  both("ds.load_in_4bit", "load_in_4bit", "model.base_weights", facts::base_bits, "true=4 false=-");
  key_of("model.lora_rank", "lora_rank", "model.lora_rank", "0=- #");
  key_of("model.lora_dropout", "lora_dropout", "model.lora_dropout", "");
  both("model.target_modules", "target_modules", "model.lora_targets", facts::adapter_modules, "");
  rows.as_modelled_if("bf16", "true", "bf16 under DeepSpeed")
      .read("flash_attn", "model.flash_attention", facts::attention_backend, "true=flash2 false=-", "before 2026")
      .as_modelled("ds.packing_samples packing_samples", "sequences are full")
      .not_said("ds.zpg zpg ds.grad_accum_dtype grad_accum_dtype ds.universal_ckpt", "changes memory")
      .time("ds.overlap_* ring_head_stride ds.ring_head_stride", "changes time alone")
      .no_effect(
          "data.* dataset dataset_* input_key output_key input_template apply_chat_template tokenizer_chat_template "
          "eval_* max_samples multiturn pretrain_mode disable_fast_tokenizer train.* max_epochs learning_rate lr_* "
          "adam_* adam.* optim.* l2 max_norm aux_loss_coef seed logger.* logging_steps save_* ckpt.* ckpt_path "
          "load_checkpoint use_wandb wandb_* use_tensorboard use_ms local_rank lora_alpha model.lora_alpha "
          "model.disable_fast_tokenizer model.aux_loss_coef disable_trace_cache",
          "of the run, of the data, or a value");
  return rows.take();
}

std::vector<LaunchFlag> verl_rows() {
  FlagRows rows(LaunchFormat::verl);
  rows.read("data.micro_batch_size_per_gpu", "model.micro_batch", whole)
      .read("data.micro_batch_size", "model.micro_batch", whole, "its former name")
      .read("data.train_batch_size", "model.global_batch", whole)
      .read("data.max_length", "model.sequence", whole)
      .read("model.partial_pretrain", "model.name", facts::model, "", "")
      .read("model.path", "model.name", facts::model, "", "of its engine since 2025")
      .as_modelled_if("model.strategy", "fsdp fsdp2", "sharded by FSDP")
      .read("model.fsdp_config.model_dtype", "model.precision", "fp32=bf16_mixed bf16=bf16 bfloat16=bf16",
            "of what is shared out; products are in bf16")
      .read("model.fsdp_config.cpu_offload", "model.optimizer_device", facts::offload_everything, if_on,
            "and model.weight_device")
      .read("model.fsdp_config.offload_params", "model.optimizer_device", facts::offload_everything, if_on, "")
      .read("model.enable_gradient_checkpointing", "model.recompute", "true=full false=none")
      .read("model.use_liger", "model.loss", "true=chunked false=-")
      .read("model.lora_rank", "model.lora_rank", "0=- #")
      .read("model.target_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .read("ulysses_sequence_parallel_size", "model.context_parallel", whole,
            "heads are exchanged all to all, a ring is assumed: changes time alone")
      .read("trainer.n_gpus_per_node", "model.data_parallel", facts::gpus_per_node, whole, "")
      .read("trainer.nnodes", "model.data_parallel", facts::nodes, whole, "")
      .as_modelled("use_remove_padding", "sequences are full")
      .not_said(
          "model.enable_activation_offload engine.* model.fsdp_config.wrap_policy.min_num_params data.balance_dp_token",
          "changes memory or time")
      .no_effect(
          "data.* model.trust_remote_code model.external_lib model.use_remove_padding model.custom_* optim.* trainer.* "
          "model.lora_alpha model.fsdp_config.wrap_policy.*",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace

std::vector<LaunchFlag> post_training_flags() {
  std::vector<LaunchFlag> all = openrlhf_rows();
  for (LaunchFlag& row : verl_rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace spillway::launch
