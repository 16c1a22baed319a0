// Activation bytes and flops of the architectures beyond the plain decoder, against closed forms.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/models_beside.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::architectures {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;  // tokens per sequence, sequences, tokens

Trace generate(const ModelSpec& model, TrainingSetup setup = {}) {
  if (!model.reads_images()) setup.sequence = s;
  setup.micro_batch = b;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), {});
  trace.check_invariants();
  return trace;
}

// What one more layer keeps for its backward.
std::int64_t kept_per_layer(ModelSpec model, const TrainingSetup& setup = {}) {
  model.layers = 2;
  const std::int64_t less = memory_of(generate(model, setup)).kept;
  model.layers = 3;
  const HeldBytes more = memory_of(generate(model, setup));
  EXPECT_EQ(more.left, 0);
  return more.kept - less;
}

ModelSpec small_mixtral() {
  ModelSpec model = find_model("mixtral-8x7b");
  model.layers = 2, model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = 512;
  model.experts = {.count = 8, .active = 2, .width = 512};
  return model;
}

// Attention as Llama's: input, norm, rotated queries, context, second input and norm, keys and values. Experts:
// k rows per token of input, gate, its silu, up, product and result; the softmax over the experts in fp32; a weight
// and an index per chosen expert.
constexpr std::int64_t moe_layer(std::int64_t h, std::int64_t kv, std::int64_t a, std::int64_t f, std::int64_t e,
                                 std::int64_t k) {
  return 2 * t * (6 * h + 2 * kv) + 2 * 4 * t + 4 * a * t + 2 * t * k * (2 * h + 4 * f) + 4 * t * e + 12 * t * k;
}

TEST(Experts, ActivationBytesOfALayer) { EXPECT_EQ(kept_per_layer(small_mixtral()), moe_layer(256, 64, 8, 512, 8, 2)); }

// Shared experts keep gate, its silu, up and product; a gated sum keeps their result and a number per token too.
TEST(Experts, SharedExpertsKeepAFeedForwardBlock) {
  ModelSpec model = small_mixtral();
  const std::int64_t without = kept_per_layer(model);
  model.experts.shared_width = 384;
  EXPECT_EQ(kept_per_layer(model) - without, 2 * t * 4 * 384);
  model.experts.shared_gate = true;
  EXPECT_EQ(kept_per_layer(model) - without, 2 * t * (4 * 384 + 256 + 1));
}

// 2 flops per token and active matrix element, 2 b s^2 q of causal flash attention; backwards 4 and five halves.
TEST(Experts, FlopsAreThoseOfTheActiveParameters) {
  const ModelSpec model = small_mixtral();
  const std::int64_t products = 2 * t * matmul_parameter_count(model), square = 2 * 2 * b * s * s * 256;
  const Trace trace = generate(model);
  EXPECT_EQ(flops_of(trace, Phase::forward), products + square);
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * products + square / 2 * 5);
}

// OPT-350m: what leads from the embedding into the layers, and out of them to the head, multiplies every token, and the
// head is as narrow as the embedding.
TEST(NarrowEmbedding, FlopsHaveBothMatrices) {
  ModelSpec model = find_model("opt-350m");
  model.layers = 2, model.vocabulary = 1000;
  const std::int64_t layer = 12 * 1024 * 1024, matrices = 2 * layer + 2 * 512 * 1024 + 1000 * 512;
  EXPECT_EQ(matmul_parameter_count(model), matrices);
  const Trace trace = generate(model);
  const std::int64_t square = 2 * 2 * b * s * s * 1024;
  EXPECT_EQ(flops_of(trace, Phase::forward), 2 * t * matrices + square);
  EXPECT_EQ(flops_of(trace, Phase::backward), 4 * t * matrices + square / 2 * 5);
  EXPECT_THROW(static_cast<void>(generate(model, {.tensor_parallel = 2})), InputError);
}

// A value model's head is a row: 2 t h flops in place of the vocabulary's, and its loss keeps 4 bytes a token.
TEST(ValueHead, ANumberForEachToken) {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 2;
  const ModelSpec values = with_value_head(model);
  EXPECT_EQ(parameter_count(values), parameter_count(model) + 2048);  // the embedding was tied
  EXPECT_EQ(flops_of(generate(model), Phase::forward) - flops_of(generate(values), Phase::forward),
            2 * t * 2048 * (model.vocabulary - 1));
  const HeldBytes held = memory_of(generate(values));
  EXPECT_EQ(held.left, 0);
}

TEST(Experts, FirstLayersAreDense) {
  ModelSpec model = small_mixtral();
  model.experts.first_dense_layers = 2;
  EXPECT_EQ(flops_of(generate(model), Phase::forward),
            2 * t * (matmul_parameter_count(model)) + 2 * 2 * b * s * s * 256);
}

TEST(Experts, FullRecomputeKeepsTheInput) {
  EXPECT_EQ(kept_per_layer(small_mixtral(), {.recompute = Recompute::full}), 2 * t * 256);
}

// Spread over e of eight data-parallel ranks: count / e experts each; t k rows of h to their ranks and back, and the
// same for the gradients, four all-to-alls per layer.
TEST(Experts, SpreadOverRanks) {
  const ModelSpec model = small_mixtral();
  TrainingSetup setup{.data_parallel = 8, .expert_parallel = 4};
  setup.sequence = s, setup.micro_batch = b;
  const auto weights = [](const Trace& trace) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      if (trace.tensors.role[i] == TensorRole::weight &&
          trace.strings.text(trace.tensors.name[i]).find(".experts.") != std::string::npos)
        sum += trace.tensors.bytes[i].count();
    return sum;
  };
  const std::int64_t whole = weights(generate(model));
  EXPECT_EQ(whole, 2 * 2 * 8 * 3 * 256 * 512);
  const Cluster cluster{
      .timer = [](NetworkCollective, Bytes bytes, const GroupShape&) { return Picos(bytes.count()); }};
  const Trace spread = generate_trace(model, setup, CostModel(example_profile()), cluster);
  EXPECT_EQ(weights(spread) * 4, whole);
  std::int64_t exchanges = 0, reductions = 0;
  for (std::size_t i = 0; i < spread.ops.size(); ++i) {
    const std::string_view name = spread.strings.text(spread.ops.name[i]);
    exchanges += name.find("all_to_all") != std::string_view::npos ? 1 : 0;
    reductions += name.find("all_reduce_gradients") != std::string_view::npos ? 1 : 0;
  }
  EXPECT_GE(exchanges, 2 * 4);
  EXPECT_GE(reductions, 2);  // of experts over two ranks, of the rest over eight
  EXPECT_EQ(flops_of(spread, Phase::forward), flops_of(generate(model), Phase::forward));
}

ModelSpec small_deepseek(std::int64_t query_rank) {
  ModelSpec model = find_model("deepseek-v2-lite");
  model.layers = 2, model.hidden = 256, model.heads = model.kv_heads = 4, model.vocabulary = 1000;
  model.feed_forward = 512, model.experts = {};
  model.latent = {.query_rank = query_rank, .kv_rank = 48, .rope_dim = 16, .nope_dim = 32, .value_dim = 24};
  model.head_dim = 48;
  return model;
}

// Input, norm, second input and norm (4 h); the query's bottleneck before and after its norm; the latent with the
// shared key, and the latent's norm; queries, keys, values, context; four of the feed-forward width; statistics of
// the norms and of attention's rows.
TEST(LatentAttention, ActivationBytesOfALayer) {
  const std::int64_t h = 256, a = 4, wide = 48, v = 24, k = 48, r = 16, f = 512;
  const std::int64_t common = 2 * t * (4 * h + (k + r) + k + 2 * a * wide + 2 * a * v + 4 * f) + 3 * 4 * t + 4 * a * t;
  EXPECT_EQ(kept_per_layer(small_deepseek(0)), common);
  EXPECT_EQ(kept_per_layer(small_deepseek(80)), common + 2 * t * 2 * 80 + 4 * t);
}

// Causal attention: a s^2 b (n + r + v) flops forwards; three products of the wide kind and two of the narrow back.
TEST(LatentAttention, Flops) {
  const ModelSpec model = small_deepseek(80);
  const std::int64_t products = 2 * t * matmul_parameter_count(model), square = 2 * b * 4 * s * s;
  const Trace trace = generate(model);
  EXPECT_EQ(flops_of(trace, Phase::forward), products + square * (48 + 24));
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * products + square * (3 * 48 + 2 * 24));
}

// Without the fused kernel: a softmax instead of row sums, the whole square, two products of each kind backwards.
TEST(LatentAttention, AsSeparateKernels) {
  const ModelSpec model = small_deepseek(80);
  const std::int64_t a = 4, square = b * a * s * s;
  const TrainingSetup plain{.flash_attention = false};
  EXPECT_EQ(kept_per_layer(model, plain) - kept_per_layer(model), 2 * square - 4 * a * t);
  TrainingSetup selective = plain;
  selective.recompute = Recompute::selective;
  EXPECT_EQ(kept_per_layer(model, plain) - kept_per_layer(model, selective), 2 * square);
  const std::int64_t forward = 2 * t * matmul_parameter_count(model) + 2 * 2 * square * (48 + 24);
  EXPECT_EQ(flops_of(generate(model, plain), Phase::forward), forward);
  EXPECT_EQ(flops_of(generate(model, plain), Phase::backward), 2 * forward);
}

// Queries of n heads and one key (before and after its LayerNorm) of width d, a weight per head, and the best keys of
// each row: score and place.
TEST(Indexer, ActivationBytesOfALayer) {
  ModelSpec model = small_deepseek(80);
  const std::int64_t without = kept_per_layer(model), n = 4, d = 32, keys = 16;
  model.indexer = {.heads = n, .head_dim = d, .keys = keys};
  EXPECT_EQ(kept_per_layer(model) - without, 2 * t * (n * d + 2 * d + n) + 8 * t + 8 * t * keys);
  model.indexer.keys = 2 * s;  // more than there are
  EXPECT_EQ(kept_per_layer(model) - without, 2 * t * (n * d + 2 * d + n) + 8 * t + 8 * t * s);
}

// n b s^2 d flops of scores; attention sees the chosen keys alone: w (2 s - w) pairs in place of s^2. Backwards the
// indexer does its products' weight gradients alone, attention's weights on the chosen over again and two products of
// the chosen scores.
TEST(Indexer, Flops) {
  ModelSpec model = small_deepseek(80);
  const std::int64_t n = 4, d = 32, keys = 16, heads = 4, pairs = 2 * b * heads * keys * (2 * s - keys);
  model.indexer = {.heads = n, .head_dim = d, .keys = keys};
  const std::int64_t products = 2 * t * matmul_parameter_count(model);
  const std::int64_t own = 2 * (80 * n * d + model.hidden * (d + n)), scores = 2 * n * b * s * s * d;
  const Trace trace = generate(model);
  EXPECT_EQ(flops_of(trace, Phase::forward), products + pairs * (48 + 24) + scores);
  EXPECT_EQ(flops_of(trace, Phase::backward),
            2 * products - 2 * t * own + pairs * (3 * 48 + 2 * 24) + 2 * 2 * t * keys * (heads * 48 + 2 * n * d));
}

// Megatron-core's layers keep the bottleneck in fp8 alone, or not at all where the forward is run again.
TEST(Indexer, RunsInFp8AndRecomputed) {
  ModelSpec model = small_deepseek(80);
  model.indexer = {.heads = 4, .head_dim = 32, .keys = 16};
  for (const TrainingPrecision precision : {TrainingPrecision::bf16_mixed, TrainingPrecision::fp8_mixed})
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      TrainingSetup setup{.precision = precision, .recompute = recompute};
      setup.framework = Framework::megatron;
      const Trace trace = generate(model, setup);
      EXPECT_EQ(memory_of(trace).left, 0);
      const std::int64_t runs = recompute == Recompute::full ? 2 : 1;
      std::int64_t choices = 0;
      for (std::size_t i = 0; i < trace.ops.size(); ++i)
        choices += trace.strings.text(trace.ops.name[i]) == "choose_keys" ? 1 : 0;
      EXPECT_EQ(choices, runs * model.layers);
    }
}

ModelSpec small_qwen3_next(std::int64_t full_every) {
  ModelSpec model = find_model("qwen3-next-80b-a3b");
  model.layers = 2, model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = 512, model.experts = {};
  model.linear = {
      .key_heads = 4, .value_heads = 8, .key_dim = 32, .value_dim = 16, .convolution = 4, .full_every = full_every};
  return model;
}

// The residual twice with its norms and a feed-forward block; both products, what the convolution made of one, normed
// queries and keys, decays, inverses, results before and after their norm.
TEST(LinearAttention, ActivationBytesOfALayer) {
  const std::int64_t h = 256, f = 512, a = 8, k = 128, v = 128;
  const std::int64_t rest = 2 * t * (4 * h + 4 * f) + 8 * t;
  const std::int64_t block = 2 * t * (2 * k + 2 * v) + 4 * a * t + 2 * t * (2 * k + v) + 2 * t * 2 * a * 32 +
                             8 * a * t + 6 * a * t + 2 * 64 * a * t + 2 * t * v + 4 * a * t + 2 * t * v;
  EXPECT_EQ(kept_per_layer(small_qwen3_next(0)), rest + block);
}

TEST(LinearAttention, Flops) {
  const ModelSpec model = small_qwen3_next(0);
  const std::int64_t rows = 8 * t, k = 32, v = 16, c = 64, filters = 2 * (2 * 128 + 128) * 4;
  const std::int64_t products = 2 * t * (matmul_parameter_count(model) - filters);
  const Trace trace = generate(model);
  EXPECT_EQ(flops_of(trace, Phase::forward),
            products + 2 * rows * (2 * c * k + 2 * c * (k + v) + 4 * k * v + 2 * k * v + 2 * c * (k + v)));
  EXPECT_GT(flops_of(trace, Phase::backward), 2 * products);
  EXPECT_EQ(memory_of(trace).left, 0);
}

// Heads are split over tensors: one rank of two keeps half of the block's.
TEST(LinearAttention, IsSplitOverTensors) {
  const ModelSpec model = small_qwen3_next(0);
  TrainingSetup setup{.tensor_parallel = 2};
  setup.sequence = s, setup.micro_batch = b;
  const Cluster cluster{
      .timer = [](NetworkCollective, Bytes bytes, const GroupShape&) { return Picos(bytes.count()); }};
  const auto kept = [&](ModelSpec now) {
    const auto of = [&](std::int64_t layers) {
      now.layers = layers;
      return memory_of(generate_trace(now, setup, CostModel(example_profile()), cluster)).kept;
    };
    const std::int64_t less = of(2);
    return of(3) - less;
  };
  const std::int64_t replicated = 2 * t * 4 * 256 + 8 * t;
  EXPECT_EQ(kept(model) - replicated, (kept_per_layer(model) - replicated) / 2);
}

// Attention's result, a share for each of its values and their product, in place of the result.
TEST(AttentionGate, KeepsSharesAndProducts) {
  ModelSpec model = small_qwen3_next(1);
  const std::int64_t with = kept_per_layer(model);
  model.attention_gate = false;
  EXPECT_EQ(with - kept_per_layer(model), 2 * t * 2 * 256);
}

// ViT: no mask, so attention does the whole square, 4 b s^2 h per layer; the images themselves want no gradient, so
// the patches' product has one backward product in place of two. The classifier sees one token per image.
TEST(Images, Flops) {
  ModelSpec model = find_model("vit-b-16");
  model.layers = 2;
  const std::int64_t h = 768, patches = b * 196 * 768 * h, tokens = b * 197;
  const std::int64_t blocks = tokens * 2 * 12 * h * h, classifier = b * h * 1000, square = 2 * 4 * b * 197 * 197 * h;
  const Trace trace = generate(model);
  EXPECT_EQ(flops_of(trace, Phase::forward), 2 * (patches + blocks + classifier) + square);
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * (patches + 2 * blocks + 2 * classifier) + square / 2 * 5);
  EXPECT_EQ(memory_of(trace).left, 0);
}

// A window of w: w s - w^2 / 2 pairs in place of s^2 / 2.
TEST(Windows, CutAttention) {
  ModelSpec model = small_mixtral();
  const std::int64_t whole = flops_of(generate(model), Phase::forward);
  model.attention_window = 16;
  EXPECT_EQ(whole - flops_of(generate(model), Phase::forward), 2 * 2 * b * 256 * (s * s - 16 * (2 * s - 16)));
  model.global_every = 2;  // the second of the two layers sees all
  EXPECT_EQ(whole - flops_of(generate(model), Phase::forward), 2 * b * 256 * (s * s - 16 * (2 * s - 16)));
}

// Norms of results keep their input and a statistic per token; OLMo 2 has them in place of the others.
TEST(Norms, OfResults) {
  ModelSpec model = find_model("llama-3.2-1b");
  model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32, model.feed_forward = 512;
  model.vocabulary = 1000;
  const std::int64_t pre = kept_per_layer(model), h = 256;
  model.norm_placement = NormPlacement::sandwich;
  EXPECT_EQ(kept_per_layer(model) - pre, 2 * (2 * t * h + 4 * t));
  // Branch: sub-layers read the stream itself, so two norms' results less; norms' inputs as before.
  model.norm_placement = NormPlacement::branch;
  EXPECT_EQ(kept_per_layer(model) - pre, 0);
}

// Attention and feed-forward from one norm: a norm and a sum less than one after the other.
TEST(ParallelBlocks, ShareTheNorm) {
  ModelSpec model = find_model("pythia-70m");
  model.layers = 2;
  const Trace two_norms = generate(model);
  EXPECT_EQ(flops_of(two_norms, Phase::forward), 2 * t * matmul_parameter_count(model) + 2 * 2 * b * s * s * 512);
  const std::int64_t kept = kept_per_layer(model);
  model.block_layout = BlockLayout::parallel_one_norm;
  EXPECT_EQ(kept - kept_per_layer(model), 2 * t * 512 + 8 * t);
}

// Capped scores keep a tanh as large as the softmax; fused attention none.
TEST(SoftCap, OfScoresKeepsTheTanh) {
  ModelSpec model = small_mixtral();
  model.experts = {};
  const TrainingSetup plain{.flash_attention = false};
  const std::int64_t without = kept_per_layer(model, plain), fused = kept_per_layer(model);
  model.attention_softcap = 50;
  EXPECT_EQ(kept_per_layer(model, plain) - without, 2 * b * 8 * s * s);
  EXPECT_EQ(kept_per_layer(model), fused);
}

// Three kernels on the logits, one of whose results is kept.
TEST(SoftCap, KeepsTheTanh) {
  ModelSpec model = small_mixtral();
  const std::int64_t plain = memory_of(generate(model)).kept;
  model.logit_softcap = 30;
  EXPECT_EQ(memory_of(generate(model)).kept - plain, 2 * t * 1000);
}

std::string refusal(const ModelSpec& model, const TrainingSetup& setup = {}) {
  try {
    generate(model, setup);
  } catch (const InputError& error) {
    return error.cause();
  }
  return "accepted";
}

TEST(Generatable, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(refusal(find_model("t5-small"), {.context_parallel = 2}),
            "T5 small has an encoder beside the decoder, split round a ring, which the trace generator does not know");
  ModelSpec latent = small_deepseek(0);
  latent.title = "X";
  EXPECT_EQ(refusal(latent, {.context_parallel = 2}),
            "X has latent attention round a ring, which the trace generator does not know");
  EXPECT_EQ(refusal(latent, {.data_parallel = 2, .expert_parallel = 2}), "X has no experts");
}

// Every bundled model, cut to two layers.
TEST(Generatable, BundledModelsAre) {
  for (const std::string& name : bundled_models()) {
    ModelSpec model = find_model(name);
    if (model.hidden > 2048) continue;
    model.layers = std::min<std::int64_t>(2, model.layers);
    EXPECT_EQ(refusal(model), "accepted") << name;
  }
}

// Whatever is trained of it, and by whom, a model's step is generated or refused in words, and gives all back.
TEST(Generatable, BundledModelsAreInEveryFramework) {
  std::int64_t generated = 0;
  for (const std::string& name : bundled_models()) {
    ModelSpec model = find_model(name);
    model.layers = std::min<std::int64_t>(4, model.layers);
    model.encoder_layers = std::min<std::int64_t>(2, model.encoder_layers);
    model.vocabulary = std::min<std::int64_t>(1024, model.vocabulary);
    model.experts.count = std::min<std::int64_t>(8, model.experts.count);
    model.experts.active = std::min<std::int64_t>(2, model.experts.active);
    model.experts.groups = model.experts.chosen_groups = 0;
    for (const Framework framework : {Framework::eager, Framework::huggingface, Framework::huggingface_2024,
                                      Framework::nanotron, Framework::megatron, Framework::megatron_2022})
      for (const Trainable trainable : {Trainable::full, Trainable::lora, Trainable::qlora})
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          TrainingSetup setup{.trainable = trainable, .recompute = recompute, .framework = framework};
          if (!model.reads_images()) setup.sequence = s;
          try {
            const Trace trace = generate_trace(model, setup, CostModel(example_profile()), {});
            EXPECT_EQ(memory_of(trace).left, 0) << name << " " << to_string(framework);
            ++generated;
          } catch (const InputError& error) {
            EXPECT_FALSE(error.cause().empty());
          }
        }
  }
  EXPECT_GT(generated, 1000);
}

}  // namespace
}  // namespace spillway::models::architectures
