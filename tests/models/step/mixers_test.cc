// Activation bytes and flops of layers other than attention with a feed-forward block, against closed forms.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_check.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::mixers {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;  // tokens per sequence, sequences, tokens

TrainingSetup small_setup(TrainingSetup setup) {
  setup.sequence = s, setup.micro_batch = b;
  return setup;
}

Trace trace_of(const ModelSpec& model, const TrainingSetup& setup = {}) {
  const Cluster cluster{
      .timer = [](NetworkCollective, Bytes bytes, const GroupShape&) { return Picos(bytes.count()); }};
  Trace trace = generate_trace(model, small_setup(setup), CostModel(example_profile()), cluster);
  trace.check_invariants();
  EXPECT_EQ(memory_of(trace).left, 0);
  return trace;
}

// What one more layer keeps for its backward.
std::int64_t layer_keeps(ModelSpec model, const TrainingSetup& setup = {}) {
  model.layers = 2;
  const std::int64_t less = memory_of(trace_of(model, setup)).kept;
  model.layers = 3;
  return memory_of(trace_of(model, setup)).kept - less;
}

// What one more layer computes.
std::int64_t layer_flops(ModelSpec model, Phase phase) {
  model.layers = 2;
  const std::int64_t less = flops_of(trace_of(model), phase);
  model.layers = 3;
  return flops_of(trace_of(model), phase) - less;
}

constexpr std::int64_t h = 256, f = 512;

ModelSpec small_llama() {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 2, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = f;
  return model;
}

constexpr std::int64_t a = 8, p = 32, n = 16, g = 2, k = 4, q = 32, d = a * p;

ModelSpec small_mamba(FeedForward feed_forward = FeedForward::none) {
  ModelSpec model = small_llama();
  model.mamba = {.heads = a, .head_dim = p, .state = n, .groups = g, .convolution = k, .chunk = q};
  model.blocks = {{.mixer = Mixer::mamba, .feed_forward = feed_forward}};
  return model;
}

// The layer's input twice, as it came and normed, and its statistics; the first product, the core's results, and the
// statistics of their norm. What the last product reads is made again.
constexpr std::int64_t mamba_input = 2 * t * 2 * h + 4 * t;
constexpr std::int64_t mamba_block = 2 * t * (2 * d + 2 * g * n + a) + 2 * t * d + 4 * t * g;

TEST(Mamba, ActivationBytesOfALayer) {
  EXPECT_EQ(layer_keeps(small_mamba()), mamba_input + mamba_block);
  // A feed-forward block behind it keeps what it does behind attention.
  EXPECT_EQ(layer_keeps(small_mamba(FeedForward::dense)), mamba_input + mamba_block + mamba_input + 2 * t * 4 * f);
}

TEST(Mamba, Parameters) {
  ModelSpec model = small_mamba();
  const std::int64_t two = parameter_count(model);
  model.layers = 3;
  EXPECT_EQ(parameter_count(model) - two,
            h * (2 * d + 2 * g * n + a) + (d + 2 * g * n) * (k + 1) + 3 * a + d + d * h + h);
}

TEST(Mamba, Flops) {
  const std::int64_t products = 2 * t * (h * (2 * d + 2 * g * n + a) + d * h), filter = 2 * k * t * (d + 2 * g * n);
  const std::int64_t scores = 2 * t * q * g * n, states = 2 * t * d * n, within = 2 * t * q * d;
  EXPECT_EQ(layer_flops(small_mamba(), Phase::forward), products + filter + scores + within + 2 * states);
  // Products twice; the convolution, scores and states again; of the core three of scores, two within chunks, five of
  // states in all.
  EXPECT_EQ(layer_flops(small_mamba(), Phase::backward),
            2 * products + 3 * filter + 3 * scores + 2 * within + 5 * states);
}

// Everything but the input is split, and what the last product reads stays: it is no part of the kernel then.
TEST(Mamba, IsSplitOverTensors) {
  EXPECT_EQ(layer_keeps(small_mamba(), {.tensor_parallel = 2}), mamba_input + (mamba_block + 2 * t * d) / 2);
  ModelSpec model = small_mamba();
  model.mamba.groups = 1;
  EXPECT_THROW(trace_of(model, {.tensor_parallel = 2}), InputError);
  EXPECT_THROW(trace_of(small_mamba(), {.context_parallel = 2}), InputError);
}

constexpr std::int64_t rank = 24;

// The first Mamba's: one head whose channels have states of their own.
ModelSpec first_mamba(bool norms = true) {
  ModelSpec model = small_llama();
  model.mamba = {
      .heads = 1, .head_dim = d, .state = n, .convolution = k, .norm = false, .step_rank = rank, .inner_norms = norms};
  model.blocks = {{.mixer = Mixer::mamba, .feed_forward = FeedForward::none}};
  return model;
}

TEST(FirstMamba, Parameters) {
  ModelSpec model = first_mamba();
  const std::int64_t two = parameter_count(model);
  model.layers = 3;
  EXPECT_EQ(parameter_count(model) - two,
            2 * d * h + d * (k + 1) + (rank + 2 * n) * d + d * (rank + 1) + d * n + d + (rank + 2 * n) + d * h + h);
}

// The first product, the convolution, the bottleneck as it came and normed, steps, results before and behind the gate,
// and two numbers for each state at a sequence's end.
TEST(FirstMamba, ActivationBytesOfALayer) {
  const std::int64_t narrow = 2 * t * (rank + 2 * n);
  const std::int64_t block = 2 * t * (2 * d + d + d + d + d) + 2 * narrow + 4 * b * d * 2 * n;
  EXPECT_EQ(layer_keeps(first_mamba()), mamba_input + block + 3 * 4 * t);
  EXPECT_EQ(layer_keeps(first_mamba(false)), mamba_input + block - narrow);  // copies leave what they came from
}

TEST(FirstMamba, Flops) {
  const std::int64_t products = 2 * t * (2 * d * h + (rank + 2 * n) * d + rank * d + d * h);
  EXPECT_EQ(layer_flops(first_mamba(), Phase::forward), products + 2 * t * d * k + 9 * t * d * n);
  EXPECT_EQ(layer_flops(first_mamba(), Phase::backward), 2 * products + 4 * t * d * k + 18 * t * d * n);
}

TEST(FirstMamba, WhatItRefuses) {
  EXPECT_THROW(trace_of(first_mamba(), {.tensor_parallel = 2}), InputError);
  EXPECT_THROW(trace_of(first_mamba(), {.context_parallel = 2}), InputError);
}

// The gate alone: no statistics.
TEST(Mamba, WithoutNorm) {
  ModelSpec model = small_mamba();
  model.mamba.norm = false;
  EXPECT_EQ(layer_keeps(model), mamba_input + mamba_block - 4 * t * g);
}

// Falcon-H1: both read one norm's result, and nothing is kept of the sum.
TEST(Mamba, BesideAttention) {
  ModelSpec both = small_mamba(FeedForward::dense), attention = small_llama();
  both.blocks[0].mixer = Mixer::beside;
  EXPECT_EQ(layer_keeps(both), layer_keeps(attention) + mamba_block);
  EXPECT_EQ(layer_flops(both, Phase::forward),
            layer_flops(attention, Phase::forward) + layer_flops(small_mamba(), Phase::forward));
}

// A layer of one part has that part's alone.
TEST(Blocks, AFeedForwardBlockAlone) {
  ModelSpec model = small_llama();
  model.blocks = {{.mixer = Mixer::none}};
  EXPECT_EQ(layer_keeps(model), mamba_input + 2 * t * 4 * f);
  EXPECT_EQ(layer_flops(model, Phase::forward), 2 * t * 3 * h * f);
}

TEST(ShortConvolution, BytesAndFlops) {
  ModelSpec model = small_llama();
  model.convolution = {.tokens = 3};
  model.blocks = {{.mixer = Mixer::convolution, .feed_forward = FeedForward::none}};
  EXPECT_EQ(layer_keeps(model), mamba_input + 2 * t * (3 * h + h + h + h));
  const std::int64_t products = 2 * t * 4 * h * h, filter = 2 * t * h * 3;
  EXPECT_EQ(layer_flops(model, Phase::forward), products + filter);
  EXPECT_EQ(layer_flops(model, Phase::backward), 2 * products + 2 * filter);
}

// A gate for each channel: two products through a bottleneck, decays as wide as the keys in fp32, the gate apart.
TEST(DeltaRule, GatesByChannel) {
  ModelSpec model = small_llama();
  model.linear = {.key_heads = a, .value_heads = a, .key_dim = p, .value_dim = p, .convolution = k};
  const std::int64_t by_head = layer_keeps(model), flops = layer_flops(model, Phase::forward);
  constexpr std::int64_t r = 16, c = 64;
  model.linear.gate_rank = r;
  const std::int64_t less_products = 2 * t * d + 2 * t * a;  // the gate, and decays by head
  EXPECT_EQ(layer_keeps(model) - by_head, 2 * t * (2 * d + 2 * r) - less_products + 4 * t * (d - a));
  EXPECT_EQ(layer_flops(model, Phase::forward) - flops,
            2 * t * (2 * h * r + 2 * r * d) - 2 * t * h * (d + a) + 2 * a * t * c * p);
}

// Lightning attention: the products of q, k and v and what silu makes of them, the heads' results, the norm of all of
// them, the gate, and what the last product reads.
TEST(FixedDecay, ActivationBytesAndFlops) {
  ModelSpec model = small_llama();
  model.linear = {.key_heads = a, .value_heads = a, .key_dim = p, .value_dim = p, .fixed_decay = true};
  model.blocks = {{.mixer = Mixer::delta_rule, .feed_forward = FeedForward::none}};
  EXPECT_EQ(layer_keeps(model), mamba_input + 2 * t * 10 * d + 4 * t);
  const std::int64_t core = a * t * (4 * 256 * p + 4 * p * p);
  EXPECT_EQ(layer_flops(model, Phase::forward), 2 * t * 5 * h * d + core);
  EXPECT_EQ(layer_flops(model, Phase::backward), 2 * (2 * t * 5 * h * d) + core / 2 * 5);
  EXPECT_THROW(static_cast<void>(trace_of(model, {.tensor_parallel = 2})), InputError);
}

// Layers whose heads differ have each their own sizes; windows are attended to alone.
TEST(Blocks, HeadsOfTheirOwn) {
  ModelSpec model = small_llama();
  constexpr std::int64_t w = 16, wide = 64, values = 16;
  model.blocks = {{.window = w}, {.heads = 4, .kv_heads = 1, .head_dim = wide, .value_dim = values}};
  model.layers = 1;
  const std::int64_t local = flops_of(trace_of(model), Phase::forward);
  model.layers = 2;
  const std::int64_t pairs = s * s / 2;
  EXPECT_EQ(
      flops_of(trace_of(model), Phase::forward) - local,
      2 * t * (h * (4 * wide + wide + values) + 4 * values * h + 3 * h * f) + 2 * b * 4 * pairs * (wide + values));
  ModelSpec plain = small_llama();
  plain.layers = 1;
  const std::int64_t seen = w * (2 * s - w) / 2;
  EXPECT_EQ(flops_of(trace_of(plain), Phase::forward) - local, 4 * b * h * (pairs - seen));
}

// Attention within documents: as many pairs as their own squares have, and nothing else of the layer changes.
TEST(Blocks, PackedDocuments) {
  for (const bool latent : {false, true}) {
    ModelSpec model = small_llama();
    if (latent) {
      model.kv_heads = model.heads, model.head_dim = 48;
      model.latent = {.query_rank = 64, .kv_rank = 32, .rope_dim = 16, .nope_dim = 32, .value_dim = 32};
    }
    const TrainingSetup packed{.document_tokens = s / 4};
    const std::int64_t width = latent ? 48 + 32 : 2 * 32, pairs = s * s / 2;
    const Trace whole = trace_of(model), parts = trace_of(model, packed);
    EXPECT_EQ(flops_of(whole, Phase::forward) - flops_of(parts, Phase::forward),
              model.layers * 2 * b * model.heads * width * pairs * 3 / 4);
    EXPECT_EQ(memory_of(parts).kept, memory_of(whole).kept);
    EXPECT_THROW(trace_of(model, {.document_tokens = 48}), InputError);
  }
}

TEST(Blocks, KeysAsValues) {
  ModelSpec model = small_llama();
  const std::int64_t plain = parameter_count(model);
  model.blocks = {{.keys_as_values = true}};
  EXPECT_EQ(plain - parameter_count(model), 2 * h * 2 * 32);
  trace_of(model);
}

// An input of its own for each layer, and keys of the layer before.
TEST(Blocks, InputsOfLayersAndSharedKeys) {
  ModelSpec model = small_llama();
  constexpr std::int64_t w = 16;
  const std::int64_t plain = parameter_count(model), plain_kept = layer_keeps(model);
  model.layer_inputs = {.width = w, .vocabulary = 100};
  EXPECT_EQ(parameter_count(model) - plain, 100 * 2 * w + 2 * w * h + w + 2 * (2 * h * w + h));
  // The gate, its gelu and the product, what the norm reads, its statistics, and the layer's result for the next sum
  // and product.
  EXPECT_EQ(layer_keeps(model) - plain_kept, 2 * t * (3 * w + h + h) + 4 * t + 2 * t * 2 * w + 4 * t);
  const std::int64_t own = layer_flops(model, Phase::forward);
  model.blocks = {{}, {.shares_keys = true}};
  trace_of(model);
  EXPECT_EQ(own - layer_flops(model, Phase::forward), 0);  // the third layer is the first once more
  model.layers = 1;
  const std::int64_t first = flops_of(trace_of(model), Phase::forward);
  model.layers = 2;
  EXPECT_EQ(own - (flops_of(trace_of(model), Phase::forward) - first), 2 * t * 2 * h * 2 * 32);
  for (const Recompute recompute : {Recompute::full, Recompute::operators}) trace_of(model, {.recompute = recompute});
  EXPECT_THROW(trace_of(model, {.tensor_parallel = 2}), InputError);
  model.blocks = {{.shares_keys = true}, {}};
  EXPECT_NE(shape_fault(model), std::nullopt);
}

// Experts behind a product into a narrower space: rows, gates and results are as wide as that.
TEST(Experts, InALatentWidth) {
  ModelSpec model = small_llama();
  model.activation = Activation::relu_squared;
  model.experts = {.count = 8, .active = 2, .width = f};
  const std::int64_t wide = layer_keeps(model);
  constexpr std::int64_t z = 64;
  model.experts.latent_width = z;
  // Rows of the experts and their results; the latent sum, which the last product reads, and the latent itself is gone.
  EXPECT_EQ(wide - layer_keeps(model), 2 * t * 2 * 2 * (h - z) - 2 * t * z);
}

// xIELU's slopes have a gradient each step.
TEST(Activations, SlopesAreTrained) {
  ModelSpec model = small_llama();
  model.activation = Activation::xielu;
  const std::int64_t with = parameter_count(model);
  model.activation = Activation::relu_squared;
  EXPECT_EQ(with - parameter_count(model), 2 * 2);
  model.activation = Activation::xielu;
  EXPECT_EQ(flops_of(trace_of(model), Phase::forward), 2 * t * matmul_parameter_count(model) + 4 * b * s * s * h);
}

// Besides a plain layer's: in each sub-layer the streams, logits and shares in fp32, and the branch's result.
TEST(Streams, BytesAndFlops) {
  constexpr std::int64_t m = 4, shares = m * (m + 2);
  ModelSpec model = small_llama();
  const std::int64_t plain = layer_keeps(model), flops = layer_flops(model, Phase::forward);
  const std::int64_t two = parameter_count(model);
  model.streams = m;
  EXPECT_EQ(layer_keeps(model), plain + 2 * (2 * t * m * h + 8 * t * shares + 2 * t * h));
  EXPECT_EQ(layer_flops(model, Phase::forward), flops + 2 * 2 * t * m * h * shares);
  EXPECT_EQ(parameter_count(model), two + 2 * 2 * (shares * m * h + shares + 3) + m * m * h + m + 1);
  // Stages pass all streams on.
  trace_of(model, {.pipeline_parallel = 2});
  EXPECT_THROW(trace_of(model, {.tensor_parallel = 2}), InputError);
  // Recomputed, a layer keeps what it reads.
  EXPECT_EQ(layer_keeps(model, {.recompute = Recompute::full}), 2 * t * m * h);
}

// Layers of the first group have two sources, the embedding and the sum within the group: in each sub-layer the sum,
// and a share and a statistic of each source in fp32.
TEST(ResidualGroups, BytesAndParameters) {
  ModelSpec model = small_llama();
  const std::int64_t plain = layer_keeps(model), two = parameter_count(model);
  model.residual_group = 8;
  EXPECT_EQ(layer_keeps(model), plain + 2 * (2 * t * h + 8 * t * 2));
  EXPECT_EQ(parameter_count(model), two + 2 * 2 * 2 * h + 2 * h);
  // With a group for each layer the third reads three and four sources, and the output one more.
  model.residual_group = 1;
  EXPECT_EQ(layer_keeps(model), plain + 2 * 2 * t * h + 8 * t * (3 + 4) + 8 * t);
  trace_of(model, {.recompute = Recompute::full});
  EXPECT_THROW(trace_of(model, {.pipeline_parallel = 2}), InputError);
}

constexpr std::int64_t cr = 48, cm = 4, cw = 16, cg = 2, co = 24, cd = 32;

ModelSpec small_compressed(const Block& block) {
  ModelSpec model = small_llama();
  model.kv_heads = 1;
  model.compressed = {.query_rank = cr, .rope_dim = 16, .output_groups = cg, .output_rank = co};
  model.blocks = {block};
  return model;
}

constexpr std::int64_t compressed_block = 2 * t * (2 * cr + 4 * a * cd + 2 * cd + cg * co) + 4 * t * (2 + 2 * a);
constexpr std::int64_t dense_block = 2 * t * 2 * h + 4 * t + 2 * t * 4 * f;
constexpr std::int64_t compressed_products = 2 * t * (h * cr + cr * a * cd + h * cd + a * cd * co + cg * co * h);

TEST(CompressedAttention, BytesAndFlops) {
  const Block near{.window = cw, .keys_as_values = true};
  const std::int64_t pairs = cw * (2 * s - cw) / 2, feed_forward = 2 * t * 3 * h * f;
  EXPECT_EQ(layer_keeps(small_compressed(near)), mamba_input + compressed_block + dense_block);
  EXPECT_EQ(layer_flops(small_compressed(near), Phase::forward),
            compressed_products + 4 * b * a * cd * pairs + feed_forward);
  Block far = near;
  far.compression = cm;
  EXPECT_EQ(layer_keeps(small_compressed(far)),
            mamba_input + compressed_block + dense_block + 2 * t * 2 * cd + (4 * t * cd + 4 * t) / cm);
  EXPECT_EQ(layer_flops(small_compressed(far), Phase::forward),
            compressed_products + 2 * t * h * 2 * cd + 4 * b * a * cd * (pairs + s * s / (2 * cm)) + feed_forward);
  EXPECT_EQ(
      layer_flops(small_compressed(far), Phase::backward),
      2 * (compressed_products + 2 * t * h * 2 * cd + feed_forward) + 10 * b * a * cd * (pairs + s * s / (2 * cm)));
  EXPECT_THROW(trace_of(small_compressed(far), {.tensor_parallel = 2}), InputError);
}

// Keys overlap, and 8 of 16 are seen; the indexer has compressed keys of its own and scores them.
TEST(CompressedAttention, ChosenKeys) {
  constexpr std::int64_t heads = 2, wide = 16, keys = 8;
  ModelSpec model = small_compressed({.window = cw, .keys_as_values = true, .compression = cm, .chooses = true});
  model.indexer = {.heads = heads, .head_dim = wide, .keys = keys};
  const std::int64_t pairs = cw * (2 * s - cw) / 2 + keys * s - keys * keys * cm / 2;
  const std::int64_t index = cr * heads * wide + h * heads + h * 4 * wide;
  EXPECT_EQ(layer_flops(model, Phase::forward), compressed_products + 2 * t * (h * 4 * cd + index) +
                                                    2 * t * (s / cm / 2) * heads * wide + 4 * b * a * cd * pairs +
                                                    2 * t * 3 * h * f);
  const std::int64_t compressed = 2 * t * 4 * cd + (4 * t * cd + 4 * t) / cm,
                     index_keys = 2 * t * 4 * wide + (4 * t * wide + 4 * t) / cm;
  EXPECT_EQ(layer_keeps(model), mamba_input + compressed_block + dense_block + compressed + index_keys +
                                    2 * t * (heads * wide + heads) + 8 * t * keys);
  const std::int64_t two = parameter_count(model);
  model.layers = 3;
  EXPECT_EQ(parameter_count(model) - two, h * cr + cr + cr * a * cd + h * cd + cd + a * cd * co + cg * co * h +
                                              4 * h * cd + cm * 2 * cd + cd + cr * heads * wide + h * heads +
                                              4 * h * wide + cm * 2 * wide + wide + 2 * h + 3 * h * f);
}

// MiniMax-M3: a window of as many keys, and the indexer's products, norms and choices of blocks.
TEST(ChosenBlocks, BytesAndFlops) {
  constexpr std::int64_t heads = 2, wide = 16, keys = 32, block = 16;
  ModelSpec window = small_llama(), model = small_llama();
  window.blocks = {{.window = keys}};
  model.blocks = {{.chooses = true}};
  model.indexer = {.heads = heads, .head_dim = wide, .keys = keys, .block = block};
  EXPECT_EQ(layer_flops(model, Phase::forward),
            layer_flops(window, Phase::forward) + 2 * t * h * (heads + 1) * wide + 2 * t * (s / 2) * heads * wide);
  EXPECT_EQ(layer_keeps(model),
            layer_keeps(window) + 2 * t * 2 * (heads + 1) * wide + 4 * t * (heads + 1) + 8 * t * (keys / block));
  trace_of(model, {.tensor_parallel = 2, .sequence_parallel = true});
}

// LongCat-Flash: both read one norm's result, and nothing is kept of their sum. Idle experts are scored.
TEST(DenseBesideExperts, ReadTheSame) {
  ModelSpec model = small_llama();
  model.experts = {.count = 8, .active = 2, .width = 64};
  const auto keeps = [&model](FeedForward kind) {
    ModelSpec one = model;
    if (kind == FeedForward::dense || kind == FeedForward::none) one.experts = {};
    one.blocks = {{.feed_forward = kind}};
    return layer_keeps(one);
  };
  EXPECT_EQ(keeps(FeedForward::both),
            keeps(FeedForward::dense) + keeps(FeedForward::experts) - keeps(FeedForward::none) - mamba_input);
  model.blocks = {{.feed_forward = FeedForward::both}};
  const std::int64_t flops = layer_flops(model, Phase::forward);
  model.experts.idle = 4;
  EXPECT_EQ(layer_flops(model, Phase::forward), flops + 2 * t * h * 4);
}

// Kimi K3: the result's gate without a bottleneck, and no value of one to keep.
TEST(DeltaRule, WholeGate) {
  ModelSpec model = small_llama();
  constexpr std::int64_t r = 16;
  model.linear = {.key_heads = 4, .value_heads = 4, .key_dim = 32, .value_dim = 32, .convolution = 4, .gate_rank = r};
  const std::int64_t through = layer_keeps(model);
  model.linear.whole_gate = true;
  EXPECT_EQ(layer_keeps(model), through - 2 * t * r);
}

// OLMo, BLOOM: norms keep what others do.
TEST(Norms, WithoutWeightsAndOfTheEmbedding) {
  ModelSpec model = small_llama();
  model.norm = NormKind::layer_norm;
  const std::int64_t keeps = layer_keeps(model), two = parameter_count(model);
  model.norm_weights = false;
  EXPECT_EQ(layer_keeps(model), keeps);
  EXPECT_EQ(parameter_count(model), two - 5 * 2 * h);
  model.norm_weights = true, model.embedding_norm = true;
  EXPECT_EQ(parameter_count(model), two + 2 * h);
  EXPECT_EQ(layer_keeps(model), keeps);
}

}  // namespace
}  // namespace spillway::models::mixers
