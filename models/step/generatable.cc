#include "models/step/generatable.h"

#include <fmt/format.h>

#include "base/input_error.h"
#include "models/spec/model_part.h"

namespace spillway::models {
namespace {

struct Gap {
  bool present;
  const char* what;
};

void refuse(const ModelSpec& model, const Gap& gap, const char* remedy) {
  if (gap.present)
    throw InputError(model.name, "",
                     fmt::format("{} has {}, which the trace generator does not know", model.title, gap.what), remedy);
}

// What a module's recomputation needs that this model or set-up lacks.
void require_recomputable(const ModelSpec& model, const TrainingSetup& setup) {
  const bool engine = has_engine_layers(model, setup), merged = has_merged_experts(model, setup);
  const struct {
    const char* module;
    bool works;
    const char* needs;
  } modules[] = {
      {"attention",
       model.block_layout == BlockLayout::sequential && !model.norms_results() && model.streams == 1 &&
           model.residual_group == 0,
       "attention and feed-forward one behind the other on one residual stream, without norms of their results"},
      {"layernorm", engine, "Transformer Engine's layers"},
      {"mla_up_proj", setup.flash_attention && setup.trains_all() && model.has_latent(),
       "latent attention, fused, and all weights trained"},
      {"moe_act", merged && model.has_experts(), "experts of Megatron-core, all weights trained"},
      {"shared_experts", merged && model.experts.shared_width > 0,
       "shared experts of Megatron-core, all weights trained"},
      {"moe", model.has_experts(), "experts"},
  };
  for (const auto& [module, works, needs] : modules)
    if (setup.recomputes_module(module) && !works)
      throw InputError(
          "", "recompute_modules",
          fmt::format("{} can't be recomputed apart in this step of {}: it needs {}", module, model.title, needs),
          "leave it out, or set recompute to full");
}

}  // namespace

void require_generatable(const ModelSpec& model) {
  const Gap gaps[] = {
      {model.has_latent() && (model.qkv_bias || model.query_key_norm || model.wide_query_key_norm),
       "latent attention with biases or norms of queries and keys"},
      {model.has_experts() && model.block_layout != BlockLayout::sequential, "experts beside attention"},
  };
  for (const Gap& gap : gaps) refuse(model, gap, "choose another model, or record a trace of this one");
}

// What holds multi-token prediction apart from every other step.
void require_predictable(const ModelSpec& model, const TrainingSetup& setup) {
  if (model.mtp_layers == 0) return;
  const bool is_plain = !model.has_encoder() && !model.reads_images() && model.streams == 1 &&
                        model.residual_group == 0 && !model.has_layer_inputs() && !model.shares_keys() &&
                        model.embedding_width == 0;
  if (!setup.traits().core || !setup.trains_all() || setup.zero_stage == 3 || setup.sequence_slices > 1 || !is_plain)
    throw InputError("", "mtp_layers",
                     "multi-token prediction is Megatron-core's here, of decoders, with all weights trained and whole "
                     "on each rank",
                     "set framework to megatron and zero_stage to 0, 1 or 2, or mtp_layers to 0");
}

void require_generatable(const ModelSpec& model, const TrainingSetup& setup) {
  require_predictable(model, setup);
  const bool split = setup.tensor_parallel > 1, ring = setup.context_parallel > 1;
  const Gap splits[] = {
      {split && model.wide_query_key_norm && model.norm != NormKind::rms_norm,
       "wide LayerNorms of queries and keys split over tensors"},
      {setup.sequence_parallel && split && model.reads_images(),
       "an image's tokens, an odd number, split over tensors"},
      {split && model.embedding_width > 0, "an embedding narrower than its layers, split over tensors"},
      {ring && model.reads_images(), "image patches round a ring"},
      {ring && model.has_encoder(), "an encoder beside the decoder, split round a ring"},
      {ring && model.positions == Positions::relative_bias, "a relative position bias round a ring"},
      {ring && model.has_latent(), "latent attention round a ring"},
      {ring && model.any_block([](const Block& b) { return b.chooses; }), "chosen keys round a ring"},
      {(split || ring) && model.has_compressed(), "compressed attention split over tensors or round a ring"},
      {(split || ring) && model.streams > 1, "several residual streams split over tensors or round a ring"},
      {ring && model.any_block([](const Block& b) { return b.attends() && b.window > 0; }),
       "an attention window round a ring"},
      {ring && model.has_linear(), "linear attention round a ring"},
      {split && model.linear.fixed_decay, "linear attention with one norm over all heads, split over tensors"},
      {ring && model.has_mamba(), "Mamba: its states would go from rank to rank, round a ring"},
      {model.mamba.is_first() && setup.tensor_parallel > 1, "the first Mamba: its bottleneck sums over all channels"},
      {ring && model.has_convolutions(), "short convolutions round a ring"},
      {model.has_mamba() && model.mamba.groups % setup.tensor_parallel != 0,
       "fewer groups of Mamba-2's heads than tensor ranks"},
      {model.has_linear() && model.linear.key_heads % setup.tensor_parallel != 0,
       "fewer heads of linear attention's keys than tensor ranks"},
  };
  for (const Gap& gap : splits) refuse(model, gap, "set tensor_parallel and context_parallel to 1");
  const bool is_cut = setup.pipeline_parallel > 1 || setup.sequence_slices > 1;
  refuse(model, {model.residual_group > 0 && is_cut, "residuals from layers of other stages or slices"},
         "set pipeline_parallel and sequence_slices to 1");
  const bool is_sliced = setup.sequence_slices > 1 || !setup.flash_attention;
  refuse(model, {model.has_compressed() && is_sliced, "compressed attention in slices or without a fused kernel"},
         "set sequence_slices to 1 and flash_attention to true");
  for (const Block& each : model.blocks)
    refuse(model, {each.compression > setup.document(), "keys that stand for more tokens than a sequence has"},
           "give a longer sequence");
  const bool has_inputs = model.has_layer_inputs() || model.shares_keys();
  refuse(model,
         {has_inputs && (split || ring || setup.pipeline_parallel > 1 || setup.sequence_slices > 1),
          "layers with inputs and keys of other layers, which one rank has"},
         "set all parallel sizes but data_parallel to 1");
  for (const Block& each : model.blocks) {
    const std::int64_t t = setup.tensor_parallel, heads = each.heads, keys = each.kv_heads, width = each.width;
    const bool uneven = heads % t != 0 || (keys % t != 0 && !setup.shares_key_heads(keys)) || width % t != 0;
    refuse(model, {uneven, "a layer whose heads or feed-forward rows can't be split so"}, "set tensor_parallel to 1");
  }
  refuse(model, {setup.pipeline_chunks > 1 && model.has_encoder(), "an encoder beside the decoder, interleaved"},
         "set pipeline_chunks to 1");
  if (model.has_experts() && model.experts.count % setup.expert_parallel != 0)
    throw InputError("", "expert_parallel",
                     fmt::format("{} ranks can't share {} experts evenly", setup.expert_parallel, model.experts.count),
                     "give a divisor of the number of experts");
  if (!model.has_experts() && setup.expert_parallel > 1)
    throw InputError("", "expert_parallel", model.title + " has no experts", "set it to 1");
  require_recomputable(model, setup);
  if (model.reads_images() && setup.sequence != model.max_positions)
    throw InputError("", "sequence", fmt::format("{} sees {} tokens of an image", model.title, model.max_positions),
                     "leave it out");
}

void require_precision(const TrainingSetup& setup, const GpuProfile& gpu) {
  if (setup.precision == TrainingPrecision::nvfp4_mixed &&
      !gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::fp4)])
    throw InputError("", "precision", fmt::format("{} has no fp4 arithmetic", gpu.title),
                     "choose fp8_mixed, or give the GPU's gpu.peak_flops.fp4");
  if (setup.precision == TrainingPrecision::fp8_mixed &&
      !gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::fp8)])
    throw InputError("", "precision", fmt::format("{} has no fp8 arithmetic", gpu.title),
                     "choose bf16_mixed, or give the GPU's gpu.peak_flops.fp8");
}

}  // namespace spillway::models
