// A decoder that attends to an encoder: activation bytes, flops, parameters and gradients against closed forms.
#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_part.h"
#include "models/spec/parallel_layout.h"
#include "models/spec/pipeline_setup.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::encoder_decoder {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;  // tokens per sequence, sequences, tokens

Trace generate(const ModelSpec& model, TrainingSetup setup = {}) {
  setup.sequence = s;
  setup.micro_batch = b;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

// T5 with a query width apart from h. Layers: encoder, decoder.
ModelSpec t5(std::int64_t encoder, std::int64_t decoder, bool gated = false) {
  ModelSpec model = find_model("t5-small");
  model.encoder_layers = encoder, model.layers = decoder;
  model.hidden = 256, model.heads = model.kv_heads = 4, model.head_dim = 32, model.feed_forward = 512;
  model.vocabulary = 1024;
  if (gated) model.activation = Activation::gelu_gated;
  return model;
}

std::int64_t kept(const ModelSpec& model, const TrainingSetup& setup) {
  const HeldBytes memory = memory_of(generate(model, setup));
  EXPECT_EQ(memory.left, 0);
  return memory.kept;
}

constexpr std::int64_t h = 256, q = 128, f = 512, a = 4;

// In 2 bytes with dropout: x and its norm before attention and before the feed-forward block; queries, keys, values and
// their result; a softmax, its dropped copy and a mask; inside the block the relu's result, its dropped copy and a
// mask; a mask of each branch; 4 bytes per token and norm.
constexpr std::int64_t encoder_layer = t * (2 * 4 * h + 2 * h + 8 * q + 5 * f + 8) + 5 * b * a * s * s;
// And another attention: x and its norm, queries, keys and values (of the encoder's result, which is kept once for all
// layers), result, square, mask.
constexpr std::int64_t decoder_layer = encoder_layer + t * (2 * 2 * h + h + 8 * q + 4) + 5 * b * a * s * s;

TEST(EncoderDecoder, ActivationBytesOfALayer) {
  const TrainingSetup setup{.flash_attention = false};
  const std::int64_t base = kept(t5(2, 2), setup);
  EXPECT_EQ(kept(t5(3, 2), setup) - base, encoder_layer);
  EXPECT_EQ(kept(t5(2, 3), setup) - base, decoder_layer);
}

// Selective recompute drops the squares; full recompute keeps a layer's input.
TEST(EncoderDecoder, RecomputeKeepsLess) {
  const TrainingSetup selective{.recompute = Recompute::selective, .flash_attention = false};
  const std::int64_t base = kept(t5(2, 2), selective);
  EXPECT_EQ(kept(t5(3, 2), selective) - base, encoder_layer - 5 * b * a * s * s);
  EXPECT_EQ(kept(t5(2, 3), selective) - base, decoder_layer - 10 * b * a * s * s);
  for (const bool flash : {false, true}) {
    const TrainingSetup full{.recompute = Recompute::full, .flash_attention = flash};
    EXPECT_EQ(kept(t5(3, 2), full) - kept(t5(2, 2), full), 2 * t * h);
    EXPECT_EQ(kept(t5(2, 3), full) - kept(t5(2, 2), full), 2 * t * h);
  }
}

// One kernel keeps a number of 4 bytes per row and head instead of the squares.
TEST(EncoderDecoder, FlashAttentionKeepsNoSquare) {
  const std::int64_t saved = 5 * b * a * s * s - 4 * a * t;
  EXPECT_EQ(kept(t5(3, 2), {}) - kept(t5(2, 2), {}), encoder_layer - saved);
  EXPECT_EQ(kept(t5(2, 3), {}) - kept(t5(2, 2), {}), decoder_layer - 2 * saved);
}

// T5 1.1: gate, its gelu, up and product, dropped copy and mask instead of two tensors and a mask of width f.
TEST(EncoderDecoder, GatedFeedForward) {
  const TrainingSetup setup{.flash_attention = false};
  EXPECT_EQ(kept(t5(3, 2, true), setup) - kept(t5(2, 2, true), setup), encoder_layer + t * f * (2 * 4 + 3 - 7));
}

// Tensor parallel over 2: queries, keys, values, squares and the block's inside are halved; with sequence parallelism
// everything is but what was gathered: inputs of attentions and blocks, and the encoder's result for each layer.
TEST(EncoderDecoder, TensorParallelHalvesWhatIsSplit) {
  TrainingSetup setup{.flash_attention = false, .tensor_parallel = 2};
  const std::int64_t whole = t * (10 * h + 8);
  EXPECT_EQ(kept(t5(3, 2), setup) - kept(t5(2, 2), setup), whole + (encoder_layer - whole) / 2);
  const std::int64_t whole_decoder = whole + t * (5 * h + 4);
  EXPECT_EQ(kept(t5(2, 3), setup) - kept(t5(2, 2), setup), whole_decoder + (decoder_layer - whole_decoder) / 2);
  setup.sequence_parallel = true;
  EXPECT_EQ(kept(t5(3, 2), setup) - kept(t5(2, 2), setup), encoder_layer / 2 + t * h * 2);
  EXPECT_EQ(kept(t5(2, 3), setup) - kept(t5(2, 2), setup), decoder_layer / 2 + t * h * (3 + 2));
}

// 2 per token and element of a matrix (the tied head too), 4 b s^2 q per attention, of which a decoder layer has two;
// the backward twice that.
TEST(EncoderDecoder, Flops) {
  const ModelSpec model = t5(2, 3);
  const std::int64_t forward = 2 * t * matmul_parameter_count(model) + (2 + 3 * 2) * 4 * b * s * s * q;
  const Trace trace = generate(model, {.flash_attention = false});
  EXPECT_EQ(flops_of(trace, Phase::forward), forward);
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * forward);
  // Fused: a causal square counts half; five products for two.
  const std::int64_t fused = 4 * b * s * s * q / 2 * (2 * 2 + 3 * 1 + 3 * 2);
  const Trace flash = generate(model);
  EXPECT_EQ(flops_of(flash, Phase::forward), 2 * t * matmul_parameter_count(model) + fused);
  EXPECT_EQ(flops_of(flash, Phase::backward), 4 * t * matmul_parameter_count(model) + fused * 5 / 2);
}

// 14 bytes per parameter before the step and 16 before the optimizer, with no parameter without a gradient: the bias
// tables of both stacks and the shared embedding included.
TEST(EncoderDecoder, EveryParameterHasItsState) {
  for (const bool flash : {false, true}) {
    const ModelSpec model = t5(2, 2);
    const HeldBytes memory = memory_of(generate(model, {.flash_attention = flash}));
    EXPECT_EQ(memory.before, 14 * parameter_count(model));
    EXPECT_EQ(memory.before_optimizer, 16 * parameter_count(model));
  }
}

// What d ranks hold of weights, gradients and state under ZeRO, every share being even here.
TEST(EncoderDecoder, ZeroSharesEverything) {
  ModelSpec model = t5(2, 2);
  const std::int64_t n = parameter_count(model);
  const auto before = [&](std::int64_t stage) {
    return memory_of(generate(model, {.framework = Framework::megatron_2022, .data_parallel = 2, .zero_stage = stage}))
        .before;
  };
  EXPECT_EQ(before(0), (2 + 4 + 12) * n);
  EXPECT_EQ(before(1), (2 + 4) * n + 12 * n / 2);
  EXPECT_EQ(before(2), 2 * n + (4 + 12) * n / 2);
  EXPECT_EQ(before(3), (2 + 4 + 12) * n / 2);
}

// The parts of a tensor group add up to the model; norms are whole on each rank.
TEST(EncoderDecoder, TensorPartsAddUp) {
  const ModelSpec model = t5(3, 2);
  const auto norms = parameter_counts(model).norm;
  for (const std::int64_t ranks : {1, 2, 4}) {
    TrainingSetup setup{.tensor_parallel = ranks};
    std::int64_t mine = 0;
    for (const LocalParameter& local : local_parameters(model, setup, {.layers = {0, model.all_layers()}}))
      mine += local.shape.elements();
    EXPECT_EQ(ranks * (mine - norms) + norms, parameter_count(model));
  }
}

// Gradients met in the embedding: the encoder's ids, the decoder's, and the head when it is tied.
TEST(EncoderDecoder, UsesOfTheEmbedding) {
  for (const bool tied : {false, true}) {
    ModelSpec model = t5(1, 1);
    model.tied_embeddings = tied;
    const auto locals = local_parameters(model, {}, {.layers = {0, 2}});
    EXPECT_EQ(locals.front().shape.name, "embedding.weight");
    EXPECT_EQ(locals.front().uses, tied ? 3 : 2);
  }
}

// The bias is made once per stack and its table gets one gradient.
TEST(EncoderDecoder, OneBiasPerStack) {
  const Trace trace = generate(t5(3, 3), {.recompute = Recompute::full, .flash_attention = false});
  std::map<std::string, int> kernels;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) ++kernels[std::string(trace.strings.text(trace.ops.name[i]))];
  EXPECT_EQ(kernels["relative_position_buckets"], 2);
  EXPECT_EQ(kernels["add_bias_"], 2 * 6);  // forward and recompute; not in cross attention
  EXPECT_EQ(kernels["embedding_backward"], 4);
}

// Megatron-LM's T5 has learned positions, LayerNorm and biases.
TEST(EncoderDecoder, LearnedPositions) {
  ModelSpec model = find_model("gpt2-small");
  model.fused_qkv = false;
  model.encoder_layers = 2, model.layers = 2;
  const std::int64_t n = parameter_count(model);
  for (const Framework framework : {Framework::eager, Framework::megatron_2022}) {
    const HeldBytes memory = memory_of(generate(model, {.framework = framework}));
    const std::int64_t padding = framework == Framework::megatron_2022 ? (50'304 - 50'257) * 768 : 0;
    EXPECT_EQ(memory.before - 8 * s, (framework == Framework::megatron_2022 ? 18 : 14) * (n + padding));
    EXPECT_EQ(memory.left, 0);
  }
}

// In four stages, two of the encoder and two of the decoder, tied: the stages hold the model, once more the embedding
// where the decoder begins and at the head, and once more each stack's bias table (32 buckets, a heads).
TEST(EncoderDecoderStages, ParametersAddUp) {
  const ModelSpec model = t5(4, 4);
  const TrainingSetup setup = resolve({.pipeline_parallel = 4}, model);
  EXPECT_EQ(setup.pipeline_split, 2);
  const ParallelLayout layout(setup, model, 8, plan_of(setup));
  std::int64_t sum = 0;
  for (std::int64_t stage = 0; stage < 4; ++stage)
    for (const LocalParameter& local :
         local_parameters(model, setup, {layout.layers(stage, 0), stage == 0, stage == 3})) {
      sum += local.shape.elements();
      EXPECT_TRUE(local.shape.layer < 0 || layout.layers(stage, 0).contains(local.shape.layer)) << local.shape.name;
    }
  EXPECT_EQ(sum, parameter_count(model) + 2 * 1024 * h + 2 * 32 * a);
}

TrainingSetup staged(TrainingSetup setup) {
  setup.gradient_accumulation = 8;
  setup.pipeline_parallel = 4;
  return setup;
}

// Bytes of a role at most.
std::int64_t most_of(const Trace& trace, std::int16_t device, TensorRole role) {
  std::int64_t live = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device || trace.tensors.role[index_of(event.tensor)] != role) continue;
    if (event.action == MemoryAction::free_completed) continue;
    most = std::max(most, live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count());
  }
  return most;
}

// What one GPU does for eight micro-batches, four do; each holds 14 bytes per parameter of its own before the step, and
// nothing more when it is over.
TEST(EncoderDecoderStages, WorkAndMemoryAreConserved) {
  const ModelSpec model = t5(4, 4);
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    const Trace whole = generate(model, {.gradient_accumulation = 8, .recompute = recompute});
    const Trace stages = generate(model, staged({.recompute = recompute}));
    EXPECT_EQ(flops_of(stages, Phase::forward), flops_of(whole, Phase::forward));
    EXPECT_EQ(flops_of(stages, Phase::backward), flops_of(whole, Phase::backward));
    EXPECT_EQ(flops_of(stages, Phase::recompute), flops_of(whole, Phase::recompute));
    std::int64_t before = 0;
    for (std::int16_t stage = 0; stage < 4; ++stage) {
      const HeldBytes memory = memory_of(stages, stage);
      EXPECT_EQ(most_of(stages, stage, TensorRole::weight) * 7, memory.before) << stage;
      EXPECT_EQ(memory.left, 0) << stage;
      before += memory.before;
    }
    EXPECT_EQ(before, 14 * (parameter_count(model) + 2 * 1024 * h + 2 * 32 * a));
  }
}

// 1F1B: stage i of p holds p - i micro-batches, whichever stack it belongs to; one layer more in each stage.
TEST(EncoderDecoderStages, MicroBatchesInFlight) {
  const Trace small = generate(t5(4, 4), staged({.flash_attention = false}));
  const Trace large = generate(t5(6, 6), staged({.flash_attention = false}));
  for (std::int16_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(most_of(large, stage, TensorRole::activation) - most_of(small, stage, TensorRole::activation),
              (4 - stage) * (stage < 2 ? encoder_layer : decoder_layer))
        << stage;
}

// Between the decoder's stages two tensors go each way, elsewhere one; the encoder's gradient is added up on the way
// back. Copies of the embedding are on three stages, those of a bias table on the two of its stack.
TEST(EncoderDecoderStages, Transfers) {
  const Trace trace = generate(t5(4, 4), staged({}));
  EXPECT_EQ(count_of(trace, "send_forward"), 8 * (1 + 1 + 2));
  EXPECT_EQ(count_of(trace, "receive_forward"), 8 * (1 + 1 + 2));
  EXPECT_EQ(count_of(trace, "send_backward"), 8 * (1 + 1 + 2));
  EXPECT_EQ(count_of(trace, "add_encoder_gradient_"), 8);
  EXPECT_EQ(count_of(trace, "all_reduce_embedding"), 3);
  EXPECT_EQ(count_of(trace, "all_reduce_encoder_bias"), 2);
  EXPECT_EQ(count_of(trace, "all_reduce_decoder_bias"), 2);
  EXPECT_EQ(count_of(trace, "shift_right"), 8);
  const Trace deep = generate(t5(4, 4), staged({.pipeline_split = 1}));
  EXPECT_EQ(count_of(deep, "send_forward"), 8 * (1 + 2 + 2));
  EXPECT_EQ(count_of(deep, "add_encoder_gradient_"), 8 * 2);
  EXPECT_EQ(count_of(deep, "all_reduce_encoder_bias"), 0);
  EXPECT_EQ(count_of(deep, "all_reduce_decoder_bias"), 3);
}

// Splits that no rank can hold, and interleaving, which Megatron-LM refuses too.
TEST(EncoderDecoderStages, WhatIsRefused) {
  const ModelSpec model = t5(2, 6);
  EXPECT_EQ(resolve({.pipeline_parallel = 4}, model).pipeline_split, 1);
  EXPECT_EQ(resolve({.pipeline_parallel = 8}, model).pipeline_split, 2);
  EXPECT_EQ(resolve({.pipeline_parallel = 1}, model).pipeline_split, 0);
  EXPECT_EQ(resolve({.pipeline_parallel = 8, .pipeline_split = 2}, model).pipeline_split, 2);
  EXPECT_THROW((void)resolve({.pipeline_parallel = 8, .pipeline_split = 3}, model), InputError);
  EXPECT_THROW((void)resolve({.pipeline_parallel = 4, .pipeline_split = 4}, model), InputError);
  EXPECT_THROW((void)resolve({.pipeline_parallel = 4, .pipeline_split = -1}, model), InputError);
  EXPECT_THROW((void)resolve({.pipeline_parallel = 9}, model), InputError);
  EXPECT_THROW((void)resolve({.pipeline_parallel = 2, .pipeline_split = 1}, find_model("gpt2-small")), InputError);
  EXPECT_THROW((void)generate(model, {.gradient_accumulation = 4, .pipeline_parallel = 2, .pipeline_chunks = 2}),
               InputError);
}

TEST(EncoderDecoder, BundledModelsRunInEverySetUp) {
  for (const std::string& name : bundled_models()) {
    ModelSpec model = find_model(name);
    if (!model.has_encoder()) continue;
    model.encoder_layers = model.layers = 2;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      for (const std::int64_t stage : {0, 1, 2, 3}) {
        const TrainingSetup setup{.recompute = recompute,
                                  .flash_attention = stage % 2 == 0,
                                  .tensor_parallel = model.heads % 4 == 0 ? 4 : 2,
                                  .data_parallel = 2,
                                  .zero_stage = stage};
        EXPECT_EQ(memory_of(generate(model, setup)).left, 0) << name;
        TrainingSetup stages = setup;
        stages.framework = stage % 2 == 0 ? Framework::megatron_2022 : Framework::eager;
        stages.pipeline_parallel = 2 + stage / 2;
        stages.gradient_accumulation = 5;
        const Trace trace = generate(model, stages);
        for (std::int16_t device = 0; device < stages.pipeline_parallel; ++device)
          EXPECT_EQ(memory_of(trace, device).left, 0) << name << " stage " << device;
      }
  }
}

}  // namespace
}  // namespace spillway::models::encoder_decoder
