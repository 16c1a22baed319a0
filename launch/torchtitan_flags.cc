// Keys of torchtitan's TOML file (torchtitan/config/job_config.py, 2024 to 2025).
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

void torchtitan_layout(FlagRows& rows) {
  rows.say("parallelism.data_parallel_replicate_degree", "model.data_parallel", facts::replicas, whole,
           "replicas of what is sharded")
      .say("parallelism.data_parallel_shard_degree", "model.data_parallel", facts::shards, whole,
           "-1: the GPUs left over; above 1 model.zero_stage 3")
      .read("training.data_parallel_degree", "model.data_parallel", facts::shards, whole, "its name in 2024")
      .read("training.data_parallel_replicate_degree", "model.data_parallel", facts::replicas, whole,
            "its name in 2024")
      .read("training.data_parallel_shard_degree", "model.data_parallel", facts::shards, whole, "its name in 2024")
      .say("parallelism.fsdp_reshard_after_forward", "model.zero_stage", facts::reshard, "always=3 never=2 default=-",
           "never keeps the weights until their backward; default: with a pipeline never")
      .say("parallelism.tensor_parallel_degree", "model.tensor_parallel", whole, "and sequence_parallel")
      .read("training.tensor_parallel_degree", "model.tensor_parallel", whole, "its name in 2024")
      .say("parallelism.pipeline_parallel_degree", "model.pipeline_parallel", whole)
      .read("experimental.pipeline_parallel_degree", "model.pipeline_parallel", whole, "its name in 2024")
      .say("parallelism.pipeline_parallel_schedule", "model.pipeline_schedule",
           "1F1B=1f1b GPipe=gpipe Interleaved1F1B=interleaved ZBVZeroBubble=zb-v DualPipeV=dualpipe-v")
      .read("experimental.pipeline_parallel_schedule", "model.pipeline_schedule",
            "1F1B=1f1b GPipe=gpipe Interleaved1F1B=interleaved ZBVZeroBubble=zb-v", "its name in 2024")
      .say("parallelism.pipeline_parallel_layers_per_stage", "model.pipeline_chunks", facts::layers_per_chunk, whole,
           "layers / (stages x this)")
      .say("parallelism.pipeline_parallel_microbatch_size", "model.micro_batch", facts::pass_batch, whole,
           "with a pipeline; 1 where it isn't given")
      .say("parallelism.context_parallel_degree", "model.context_parallel", whole)
      .read("experimental.context_parallel_degree", "model.context_parallel", whole, "its name in 2024")
      .say("parallelism.expert_parallel_degree", "model.expert_parallel", whole)
      .as_modelled_if("parallelism.expert_tensor_parallel_degree", "1", "experts are not split over tensors when 1")
      .as_modelled_if("parallelism.context_parallel_rotate_method", "allgather",
                      "keys and values of all parts are seen")
      .or_else(FlagRole::time)
      .as_modelled_if("parallelism.enable_async_tensor_parallel", "false", "")
      .or_else(FlagRole::time)
      .as_modelled_if("parallelism.disable_loss_parallel", "false", "the loss is split over the tensor group")
      .or_else(FlagRole::adds)
      .as_modelled_if("parallelism.enable_compiled_autograd", "false", "")
      .or_else(FlagRole::time)
      .time("experimental.enable_async_tensor_parallel", "transfers of a tensor group are not cut into pieces")
      .not_said(
          "parallelism.pipeline_parallel_split_points experimental.pipeline_parallel_split_points "
          "parallelism.module_fqns_per_model_part parallelism.pipeline_parallel_first_stage_less_layers "
          "parallelism.pipeline_parallel_last_stage_less_layers",
          "layers are shared out evenly over the stages")
      .not_said(
          "parallelism.pipeline_parallel_schedule_csv",
          "give the schedule as a file: model.pipeline_schedule NAME.json (docs/how-to/choose-a-pipeline-schedule.md)")
      .adds("parallelism.pipeline_parallel_expert_parallel_overlap", "experts' transfers are not hidden")
      .time("fault_tolerance.enable", "replicas are counted as reduced in every step");
}

void torchtitan_training(FlagRows& rows) {
  rows.say("model.name", "model.name", facts::model, "", "with model.flavor a bundled model")
      .say("model.flavor", "model.name", facts::flavor, "", "")
      .read("module", "model.name", facts::model, "", "since 2026")
      .read("config", "model.name", facts::recipe, "",
            "since 2026: a function of its registry, read for the model alone")
      .read("training.num_tokens_per_microbatch_per_dp_rank", "model.micro_batch", facts::pass_tokens, whole,
            "tokens of packed sequences; 16384 where it isn't given")
      .read("training.num_tokens_per_train_step", "model.global_batch", facts::step_tokens, whole,
            "-1: one micro-batch")
      .read("training.max_context_length", "model.sequence", whole, "since 2026")
      .read("parallelism.num_pp_microbatches", "model.gradient_accumulation", whole, "since 2026")
      .not_said("training.disable_cuda_graphs", "graphs change time alone")
      .say("training.local_batch_size", "model.micro_batch", facts::local_batch, whole,
           "sequences of a replica at once; with a pipeline micro_batch x gradient_accumulation")
      .read("training.batch_size", "model.micro_batch", facts::local_batch, whole, "its name before 2025")
      .say("training.global_batch_size", "model.global_batch", whole)
      .say("training.seq_len", "model.sequence", whole)
      .say("training.mixed_precision_param", "model.precision", "bfloat16=bf16_mixed float32=fp32")
      .say("training.dtype", "model.precision", facts::weights_type, "float32=- bfloat16=bf16", "")
      .say("training.mixed_precision_reduce", "model.fp32_reduction", facts::reduce_type, "float32=true bfloat16=false",
           "with model.zero_stage 2 and 3")
      .say("model.converters", "model.precision", facts::fp8, "quantize.linear.float8=fp8_mixed float8=fp8_mixed", "")
      .say("quantize.linear.float8.recipe_name", "model.fp8_recipe", facts::fp8_recipe,
           "rowwise=rowwise tensorwise=tensorwise", "")
      .read("float8.recipe_name", "model.fp8_recipe", facts::fp8_recipe, "rowwise=rowwise tensorwise=tensorwise",
            "of earlier versions")
      .say("training.enable_cpu_offload", "model.optimizer_device", facts::offload_everything, if_on,
           "and model.weight_device")
      .say("compile.enable", "model.compile", on_off)
      .read("training.compile", "model.compile", on_off, "its name before the autumn of 2025")
      .say("optimizer.name", "model.optimizer", "AdamW=adamw Adam=adam")
      .say("optimizer.implementation", "model.optimizer_form", "fused=fused foreach=foreach")
      .read("optimizer.fused", "model.optimizer_form", "true=fused false=foreach", "its name in 2024")
      .say("activation_checkpoint.mode", "model.recompute", "none=none full=full selective=operators",
           "selective: its option op")
      .as_modelled_if("optimizer.early_step_in_backward", "false", "")
      .or_else(FlagRole::saves)
      .as_modelled_if("compile.components", "model,loss", "")
      .as_modelled_if("compile.model", "true", "")
      .as_modelled_if("activation_checkpoint.selective_ac_option", "op", "results of every second product are kept")
      .not_said("activation_checkpoint.*", "what is kept beside every second product is modelled one way")
      .time("float8.* quantize.* mx.*", "what else fp8 layers have is modelled one way")
      .no_effect("memory_estimation.*", "no training")
      .time("compile.*", "the compiler's own choices are not modelled");
}

void torchtitan_ignored(FlagRows& rows) {
  rows.no_effect(
          "job.description job.dump_folder job.print_args job.use_for_integration_test job.custom_config_module "
          "job.print_config job.save_config_file",
          "of the run, not of a step")
      .read("validation.enable", "model.evaluate_every", facts::eval_when, "true=steps false=no", "")
      .read("validation.enabled", "model.evaluate_every", facts::eval_when, "true=steps false=no", "its former name")
      .read("validation.freq", "model.evaluate_every", whole, "with validation.enable; 10 where it isn't given")
      .read("validation.steps", "model.evaluation_batches", facts::eval_iterations, whole, "-1: by the data")
      .read("validation.local_batch_size", "model.evaluation_micro_batch", whole, "8 where it isn't given")
      .no_effect("profiling.* metrics.* validation.* comm.* experimental.custom_* fault_tolerance.* debug.* logging.*",
                 "logging is not in a step")
      .no_effect("checkpoint.*", "checkpoints are between steps")
      .no_effect(
          "lr_scheduler.* optimizer.lr optimizer.eps optimizer.beta1 optimizer.beta2 optimizer.weight_decay "
          "training.warmup_steps training.max_norm training.steps training.seed training.gc_freq training.gc_debug",
          "values of the update, or how long a run is")
      .no_effect(
          "training.dataset training.dataset_path training.data_parallel_type training.dataset_* model.tokenizer_path "
          "model.hf_assets_path model.norm_type model.tokenizer_* model.print_after_conversion",
          "data come in time")
      .time("training.deterministic debug.deterministic", "other kernels, usually slower")
      .file("job.config_file", LaunchFormat::torchtitan, "the TOML file");
}

}  // namespace

std::vector<LaunchFlag> torchtitan_flags() {
  FlagRows rows(LaunchFormat::torchtitan);
  torchtitan_layout(rows);
  torchtitan_training(rows);
  torchtitan_ignored(rows);
  return rows.take();
}

}  // namespace spillway::launch
