// Keys of DeepSpeed's JSON file (deepspeed.ai/docs/config-json).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

// At most, of what counts elements.
constexpr double two_bytes = 2, small_tensors = 1000;

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
      .time("optimizer.params.torch_adam optimizer.params.adam_w_mode optimizer.legacy_fusion",
            "the optimizer's kernels are model.optimizer_form's")
      .time(
          "communication_data_type seq_parallel_communication_data_type prescale_gradients gradient_predivide_factor "
          "disable_allgather",
          "gradients are reduced in their own type")
      .not_said(
          "sequence_parallel_size pipeline.* pipeline curriculum_learning.* data_efficiency.* progressive_layer_drop.* "
          "sparse_attention.* compression_training.* hybrid_engine.* compile.* torch_autocast.*",
          "not said in a scenario")
      .saves("activation_checkpointing.partition_activations activation_checkpointing.cpu_checkpointing",
             "set model.recompute and offload.technique yourself (docs/how-to/offload-activations.md)")
      .time("activation_checkpointing.contiguous_memory_optimization", "its buffers are in reserve of fragments")
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
      .say("zero_optimization.sub_group_size", "model.sub_group", whole, "stage 3")
      .say("zero_optimization.stage3_prefetch_bucket_size", "model.prefetch_elements", whole, "stage 3")
      .read("zero_optimization.prefetch_bucket_size", "model.prefetch_elements", whole, "its older name")
      .read("zero_optimization.leaf_module.classes", "model.leaf_modules", facts::leaf_classes, "",
            "any: a layer's experts are gathered together")
      .as_modelled_if("zero_optimization.offload_optimizer.ratio", "1", "all of the optimizer state")
      .or_else(FlagRole::adds)
      .as_modelled_if("zero_optimization.reduce_scatter", "true", "")
      .or_else(FlagRole::time)
      .as_modelled_if("zero_optimization.zero_quantized_weights", "false", "")
      .or_else(FlagRole::adds)
      .as_modelled_if("zero_optimization.zero_quantized_gradients", "false", "")
      .or_else(FlagRole::adds)
      .as_modelled_if("zero_optimization.zero_hpz_partition_size", "1", "weights are split over all replicas")
      .or_else(FlagRole::adds)
      .say("zero_optimization.mics_shard_size", "model.shard_groups", facts::shard_size, whole,
           "replicas over this; -1: all share")
      .time("zero_optimization.stage3_max_live_parameters zero_optimization.max_live_parameters",
            "it stops weights from being gathered ahead; those needed are gathered all the same")
      .as_modelled_if("zero_optimization.stage3_max_reuse_distance", "1000000000", "its default")
      .or_else(FlagRole::adds)
      .as_modelled_if("zero_optimization.max_reuse_distance", "1000000000", "its default")
      .or_else(FlagRole::adds)
      .as_modelled_if("zero_optimization.contiguous_gradients", "true", "its default")
      .or_else(FlagRole::time)
      .adds("zero_optimization.stage3_param_persistence_threshold zero_optimization.param_persistence_threshold",
            "smaller parameters stay whole on each GPU: norms and biases, some hundred tensors",
            two_bytes * small_tensors)
      .time(
          "zero_optimization.stage3_module_granularity_threshold "
          "zero_optimization.allgather_partitions zero_optimization.round_robin_gradients "
          "zero_optimization.use_multi_rank_bucket_allreduce",
          "gradients and updated weights travel in buckets of model.bucket_bytes")
      .adds("zero_optimization.allgather_bucket_size", "updated weights travel in buckets of model.bucket_bytes",
            two_bytes)
      .not_said("zero_optimization.zeropp_loco_param.* zero_optimization.zenflow.* zero_optimization.super_offload",
                "how state streams to host memory and drives is modelled one way (docs/internals/models.md)")
      .saves("zero_optimization.offload_param.max_in_cpu", "weights are kept on the CPU in whole")
      .time(
          "zero_optimization.mics_* zero_optimization.offload_param.buffer_* "
          "zero_optimization.offload_optimizer.buffer_* zero_optimization.offload_optimizer.pipeline* "
          "zero_optimization.offload_optimizer.fast_init aio.*",
          "how state streams to host memory and drives is modelled one way (docs/internals/models.md)")
      .no_effect(
          "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_param.pin_memory "
          "zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.nvme_path "
          "zero_optimization.cpu_offload_use_pin_memory",
          "pinned memory and the hardware's drives are assumed")
      .say("zero_optimization.stage3_gather_16bit_weights_on_model_save", "model.saving", facts::whole_save,
           "true=first false=-", "under stage 3")
      .read("zero_optimization.stage3_gather_fp16_weights_on_model_save", "model.saving", facts::whole_save,
            "true=first false=-", "its former name")
      .read("zero_optimization.gather_16bit_weights_on_model_save", "model.saving", facts::whole_save,
            "true=first false=-", "another name")
      .no_effect(
          "zero_optimization.load_from_fp32_weights zero_optimization.elastic_checkpoint "
          "zero_optimization.ignore_unused_parameters "
          "zero_optimization.override_module_apply zero_optimization.log_trace_cache_warnings "
          "zero_optimization.memory_efficient_linear zero_optimization.legacy_stage1",
          "of saving and checks");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> deepspeed_named(std::string_view stem) {
  for (const std::string_view prefix : {"zero", "ds_z"}) {
    if (!stem.starts_with(prefix)) continue;
    const std::string_view rest = stem.substr(prefix.size());
    if (rest.empty() || rest[0] < '0' || rest[0] > '3') return {};
    const bool moves = rest.find("offload") != std::string_view::npos;
    const bool moves_weights = moves && rest[0] == '3';
    const bool moves_states = moves && rest.find("offload_params") == std::string_view::npos;
    std::vector<std::pair<std::string, std::string>> keys = {{"zero_optimization.stage", std::string(1, rest[0])},
                                                             {"bf16.enabled", "auto"}};
    if (moves_states) keys.emplace_back("zero_optimization.offload_optimizer.device", "cpu");
    if (moves_weights) keys.emplace_back("zero_optimization.offload_param.device", "cpu");
    return keys;
  }
  return {};
}

std::vector<LaunchFlag> deepspeed_flags() {
  FlagRows rows(LaunchFormat::deepspeed);
  deepspeed_training(rows);
  zero(rows);
  rows.file("deepspeed_config", LaunchFormat::deepspeed, "the JSON file, of a program's flags")
      .no_effect("deepspeed", "of the start");
  return rows.take();
}

}  // namespace spillway::launch
