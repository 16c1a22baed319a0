// Keys of DeepSpeed's JSON file (deepspeed.ai/docs/config-json).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

constexpr std::string_view device_words = "cpu=cpu nvme=drives none=gpu";

void deepspeed_training(FlagRows& rows) {
  rows.say("train_batch_size", "model.global_batch", whole)
      .say("train_micro_batch_size_per_gpu", "model.micro_batch", whole)
      .say("gradient_accumulation_steps", "model.gradient_accumulation", whole)
      .say("bf16.enabled", "model.precision", "true=bf16_mixed false=-")
      .read("bfloat16.enabled", "model.precision", "true=bf16_mixed false=-")
      .say("fp16.enabled", "model.precision", "true=fp16_mixed false=-")
      .say("data_types.grad_accum_dtype", "model.fp32_gradients", "fp32=true fp16=- bf16=-")
      .say("optimizer.type", "model.optimizer", "AdamW=adamw Adam=adam SGD=sgd Muon=muon")
      .say("tensor_parallel.autotp_size", "model.tensor_parallel", whole)
      .say("wall_clock_breakdown", "model.phase_timers", "true=true false=-", "its timers wait for the device")
      .as_modelled_if("fp16.auto_cast", "false", "")
      .as_modelled_if("amp.enabled", "false", "")
      .as_modelled_if("sparse_gradients", "false", "")
      .not_said("optimizer.params.torch_adam optimizer.params.adam_w_mode optimizer.legacy_fusion",
                "the optimizer's kernels are model.optimizer_form's")
      .not_said(
          "communication_data_type seq_parallel_communication_data_type prescale_gradients gradient_predivide_factor "
          "disable_allgather",
          "gradients are reduced in their own type")
      .not_said(
          "sequence_parallel_size pipeline.* pipeline curriculum_learning.* data_efficiency.* progressive_layer_drop.* "
          "sparse_attention.* compression_training.* hybrid_engine.* compile.* torch_autocast.*",
          "not said in a scenario")
      .not_said(
          "activation_checkpointing.partition_activations activation_checkpointing.cpu_checkpointing "
          "activation_checkpointing.contiguous_memory_optimization",
          "set model.recompute and offload.technique yourself (docs/offload.md)")
      .no_effect(
          "activation_checkpointing.number_checkpoints activation_checkpointing.synchronize_checkpoint_boundary "
          "activation_checkpointing.profile",
          "how its own function behaves where the model calls it")
      .no_effect("optimizer.params.* scheduler.* gradient_clipping fp16.* bf16.* bfloat16.* amp.*",
                 "values of the update")
      .no_effect(
          "steps_per_print dump_state flops_profiler.* tensorboard.* wandb.* csv_monitor.* comet.* comms_logger.* "
          "monitor_config.* autotuning.* elasticity.* checkpoint.* zero_allow_untested_optimizer "
          "zero_force_ds_cpu_optimizer train_steps memory_breakdown dataloader_drop_last "
          "timers.* nebula.* seed local_rank",
          "logging and checks are not in a step");
}

void zero(FlagRows& rows) {
  rows.say("zero_optimization.stage", "model.zero_stage", whole)
      .say("zero_optimization.offload_optimizer.device", "model.optimizer_device", device_words)
      .say("zero_optimization.offload_param.device", "model.weight_device", device_words, "with stage 3")
      .read("zero_optimization.cpu_offload", "model.optimizer_device", "true=cpu false=-", "its name in 2020")
      .say("zero_optimization.overlap_comm", "model.overlap_gradients", on_off)
      .say("zero_optimization.reduce_bucket_size", "model.bucket_bytes", facts::bucket_elements, whole,
           "gradients, of the weights' type")
      .as_modelled_if("zero_optimization.offload_optimizer.ratio", "1", "all of the optimizer state")
      .as_modelled_if("zero_optimization.reduce_scatter", "true", "")
      .as_modelled_if("zero_optimization.zero_quantized_weights", "false", "")
      .as_modelled_if("zero_optimization.zero_quantized_gradients", "false", "")
      .as_modelled_if("zero_optimization.zero_hpz_partition_size", "1", "weights are split over all replicas")
      .read("zero_optimization.mics_shard_size", "model.shard_groups", facts::shard_size, whole,
            "replicas over this; -1: all share")
      .not_said(
          "zero_optimization.stage3_max_live_parameters zero_optimization.stage3_max_reuse_distance "
          "zero_optimization.stage3_prefetch_bucket_size zero_optimization.stage3_param_persistence_threshold "
          "zero_optimization.stage3_module_granularity_threshold zero_optimization.max_live_parameters "
          "zero_optimization.max_reuse_distance zero_optimization.prefetch_bucket_size "
          "zero_optimization.param_persistence_threshold",
          "weights are gathered layer by layer, model.prefetch layers ahead")
      .not_said(
          "zero_optimization.contiguous_gradients zero_optimization.allgather_bucket_size "
          "zero_optimization.allgather_partitions zero_optimization.sub_group_size "
          "zero_optimization.round_robin_gradients zero_optimization.use_multi_rank_bucket_allreduce",
          "gradients and updated weights travel in buckets of model.bucket_bytes")
      .not_said(
          "zero_optimization.zeropp_loco_param.* zero_optimization.mics_* zero_optimization.zenflow.* "
          "zero_optimization.super_offload zero_optimization.offload_param.max_in_cpu "
          "zero_optimization.offload_param.buffer_* zero_optimization.offload_optimizer.buffer_* "
          "zero_optimization.offload_optimizer.pipeline* zero_optimization.offload_optimizer.fast_init aio.*",
          "how state streams to host memory and drives is modelled one way (docs/models.md)")
      .no_effect(
          "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory "
          "zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path "
          "zero_optimization.cpu_offload_use_pin_memory",
          "pinned memory and the hardware's drives are reckoned with")
      .no_effect(
          "zero_optimization.stage3_gather_16bit_weights_on_model_save zero_optimization.load_from_fp32_weights "
          "zero_optimization.stage3_gather_fp16_weights_on_model_save zero_optimization.elastic_checkpoint "
          "zero_optimization.ignore_unused_parameters zero_optimization.gather_16bit_weights_on_model_save "
          "zero_optimization.override_module_apply zero_optimization.log_trace_cache_warnings "
          "zero_optimization.memory_efficient_linear zero_optimization.legacy_stage1",
          "of saving and checks");
}

}  // namespace

std::vector<LaunchFlag> deepspeed_flags() {
  FlagRows rows(LaunchFormat::deepspeed);
  deepspeed_training(rows);
  zero(rows);
  rows.file("deepspeed_config", LaunchFormat::deepspeed, "the JSON file, of a program's flags")
      .no_effect("deepspeed", "of the start");
  return rows.take();
}

}  // namespace spillway::launch
