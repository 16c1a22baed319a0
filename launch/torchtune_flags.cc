// Keys of torchtune's YAML files (recipes/configs, 0.4 to 0.6), and of `tune run`.
#include "launch/flag_rows.h"

namespace spillway::launch {

std::vector<LaunchFlag> torchtune_flags() {
  FlagRows rows(LaunchFormat::torchtune);
  rows.read("model._component_", "model.name", facts::recipe, "",
            "a builder of torchtune's; lora_ and qlora_ are adapters (model.trainable)")
      .read("model.lora_rank", "model.lora_rank", whole)
      .read("model.lora_dropout", "model.lora_dropout", "")
      .read("model.lora_attn_modules", "model.lora_targets", facts::adapter_modules, "", "")
      .read("model.apply_lora_to_mlp", "model.lora_targets", facts::adapters_of_mlp, if_on, "")
      .read("batch_size", "model.micro_batch", whole)
      .read("gradient_accumulation_steps", "model.gradient_accumulation", whole)
      .read("tokenizer.max_seq_len", "model.sequence", whole)
      .read("dtype", "model.precision", "bf16=bf16 fp32=fp32", "of weights, gradients and state alike")
      .read("optimizer._component_", "model.optimizer",
            "torch.optim.adamw=adamw torch.optim.adam=adam torch.optim.sgd=sgd *.pagedadamw8bit=adamw_8bit "
            "*.adamw8bit=adamw_8bit *.pagedadamw=adamw",
            "paged: less memory than that where it is short")
      .read("optimizer.fused", "model.optimizer_form", "true=fused false=foreach")
      .read("loss._component_", "model.loss",
            "*.linearcrossentropyloss=chunked *.cewithchunkedoutputloss=native *.crossentropyloss=native")
      .read("enable_activation_checkpointing", "model.recompute", "true=full false=none")
      .read("enable_activation_offloading", "offload.technique", "true=checkpoints false=-", "to host memory")
      .read("fsdp_cpu_offload", "model.optimizer_device", facts::offload_everything, if_on, "and model.weight_device")
      .read("fsdp.cpu_offload", "model.optimizer_device", facts::offload_everything, if_on, "its former name")
      .read("fsdp_reshard_after_forward", "model.zero_stage", facts::reshard, "true=3 false=2", "")
      .read("tensor_parallel_dim", "model.tensor_parallel", whole)
      .read("context_parallel_dim", "model.context_parallel", whole)
      .read("data_parallel_shard_dim", "model.data_parallel", facts::shards, "-1=- #", "")
      .read("data_parallel_replicate_dim", "model.shard_groups", "1=- #", "copies of what is sharded")
      .read("compile", "model.compile", on_off)
      .as_modelled_if("optimizer_in_bwd", "false", "gradients are kept until the step")
      .or_else(FlagRole::saves)
      .as_modelled_if("dataset.packed", "true", "sequences are full")
      .not_said("model.apply_lora_to_output model.use_dora model.quantize_base quantizer.*", "changes memory")
      .adds("ac_mode ac_option", "recomputation of some layers: raises memory")
      .not_said("custom_sharded_layers", "how state is shared out is modelled one way")
      .time("enable_fp8_training fp8_recipe_name", "set model.precision fp8_mixed yourself: changes time")
      .file("config", LaunchFormat::torchtune, "the YAML file")
      .no_effect(
          "model.lora_alpha output_dir tokenizer.* dataset dataset.* dataset_val.* checkpointer.* "
          "resume_from_checkpoint seed shuffle "
          "epochs optimizer.* lr_scheduler.* loss.* max_steps_per_epoch clip_grad_norm device metric_logger.* "
          "log_level log_every_n_steps log_peak_memory_stats profiler.* save_adapter_weights_only "
          "low_cpu_ram tensor_parallel_plan.* enable_async_checkpointing run_val_every_n_steps batch_size_val "
          "collate_fn packed optimizer_in_bwd.*",
          "of the run, of the data, or a value");
  return rows.take();
}

}  // namespace spillway::launch
