// What frameworks do where a launch doesn't say, as far as it is not what spillway does.
#include <array>

#include "launch/launch_facts.h"
#include "launch/launch_table.h"
#include "models/pipeline/named_schedules.h"

namespace spillway::launch {
namespace {

using enum LaunchFormat;

constexpr std::array<LaunchDefault, 47> defaults = {{
    {megatron, "model.framework", "megatron", "Megatron-LM's kernels and buffers"},
    {megatron, "model.precision", "fp32", "neither --bf16 nor --fp16"},
    {megatron, "model.overlap_gradients", "false", "no --overlap-grad-reduce"},
    {megatron, "model.optimizer_form", "fused", "Apex's or Transformer Engine's fused optimizer"},
    {megatron, facts::hidden_dropout, "0.1", "Megatron-LM's default"},
    {megatron, facts::attention_dropout, "0.1", "Megatron-LM's default"},
    {torchtitan, facts::local_batch, "8", "torchtitan's default"},
    {torchtitan, "model.sequence", "2048", "torchtitan's default"},
    {torchtitan, "model.optimizer_form", "fused", "torchtitan's default"},
    {torchtitan, "model.fused_kernels", "false", "not compiled"},
    {torchtitan, facts::replicas, "1", "torchtitan's default"},
    {torchtitan, facts::shards, "-1", "torchtitan shards over the GPUs left over"},
    {torchtitan, facts::reduce_type, "true", "torchtitan reduces gradients in fp32"},
    {torchtitan, "model.precision", "bf16_mixed", "torchtitan's default"},
    {hf, "model.sequence", "512", "axolotl's default", Dialect::axolotl},
    {hf, "model.micro_batch", "1", "axolotl's default", Dialect::axolotl},
    {hf, "model.optimizer_form", "fused", "axolotl's default: adamw_torch_fused", Dialect::axolotl},
    {hf, "model.precision", "bf16_mixed", "axolotl's default: bf16 auto", Dialect::axolotl},
    {hf, "model.sequence", "2048", "LLaMA-Factory's default", Dialect::factory},
    {hf, facts::adapter, "factory", "LLaMA-Factory's default", Dialect::factory},
    {hf, "model.recompute", "full", "LLaMA-Factory's default", Dialect::factory},
    {hf, "model.sequence", "1024", "trl's default", Dialect::trl},
    {hf, "model.recompute", "full", "trl's default", Dialect::trl},
    {hf, "model.precision", "bf16_mixed", "trl's default", Dialect::trl},
    {hf, "model.loss", "chunked", "trl's default since 1.0", Dialect::trl},
    {hf, "model.framework", "huggingface", "transformers' Trainer"},
    {hf, "model.micro_batch", "8", "TrainingArguments' default"},
    {hf, "model.optimizer_form", "foreach", "optim adamw_torch"},
    {hf, "model.fused_kernels", "false", "Hugging Face's modules as they stand, not compiled"},
    {deepspeed, "model.precision", "fp32", "neither bf16 nor fp16 is enabled"},
    {deepspeed, "model.optimizer_form", "fused", "DeepSpeed's fused Adam"},
    {deepspeed, "model.fused_kernels", "false", "the model's modules as they stand"},
    {deepspeed, "model.overlap_gradients", "false", "overlap_comm is off unless stage 3 or said"},
    {nanotron, "model.framework", "nanotron", "nanotron's kernels and buffers"},
    {nanotron, "model.precision", "bf16_mixed", "nanotron's usual accumulate_grad_in_fp32"},
    {nanotron, "model.optimizer_form", "fused", "nanotron's usual torch_adam_is_fused"},
    {nanotron, "model.pipeline_schedule", all_forwards_first, "nanotron's default: all forward, all backward"},
    {nanotron, facts::attention_backend, "flash2", "nanotron's default"},
    {nanotron, facts::vocabulary_multiple, "1", "nanotron's default"},
    {nanotron, facts::untied, "true", "nanotron's default"},
    {nanotron, facts::no_bias, "true", "nanotron's decoders"},
    {nanotron, facts::norm, "rms_norm", "nanotron's decoders"},
    {nanotron, facts::positions, "rotary", "nanotron's decoders"},
    {nanotron, facts::activation, "silu_gated", "nanotron's decoders"},
    {nanotron, facts::hidden_dropout, "0", "nanotron's decoders"},
    {nanotron, facts::attention_dropout, "0", "nanotron's decoders"},
    {accelerate, "model.fused_kernels", "false", "the model's modules as they stand"},
}};

}  // namespace

std::span<const LaunchDefault> launch_defaults() { return defaults; }

}  // namespace spillway::launch
