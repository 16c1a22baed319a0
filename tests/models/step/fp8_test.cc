// fp8 linear layers: bytes kept and held, kernels, and the scales' upkeep.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_part.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;

Trace generate(const ModelSpec& model, TrainingSetup setup) {
  setup.sequence = s;
  setup.micro_batch = b;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

TrainingSetup fp8(TrainingSetup setup = {}) {
  setup.precision = TrainingPrecision::fp8_mixed;
  return setup;
}

ModelSpec llama(std::int64_t layers) {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = layers, model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.feed_forward = 512, model.vocabulary = 1024;
  return model;
}

ModelSpec mixtral(std::int64_t layers) {
  ModelSpec model = llama(layers);
  model.experts = {.count = 8, .active = 2, .width = 512, .shared_width = 128, .shared_gate = true};
  return model;
}

std::int64_t kept_per_layer(ModelSpec model, const TrainingSetup& setup) {
  const HeldBytes less = memory_of(generate(model, setup));
  ++model.layers;
  const HeldBytes more = memory_of(generate(model, setup));
  EXPECT_EQ(more.left, 0);
  return more.kept - less.kept;
}

std::map<std::string, std::int64_t> kernels(const Trace& trace) {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) ++counts[std::string(trace.strings.text(trace.ops.name[i]))];
  return counts;
}

// Two norms' results and the feed-forward block's product in one byte instead of two; attention keeps its result in two
// and the output projection one more.
TEST(Fp8, ActivationBytesOfALayer) {
  const std::int64_t h = 256, f = 512;
  EXPECT_EQ(kept_per_layer(llama(1), {}) - kept_per_layer(llama(1), fp8()), t * (2 * h + f - h));
  const TrainingSetup full{.recompute = Recompute::full};
  EXPECT_EQ(kept_per_layer(llama(1), fp8(full)), kept_per_layer(llama(1), full));
}

// Experts: gate and up each keep their own copy of the rows (two bytes as before), the product half of its bytes; the
// same for the shared ones, whose gate and up share a copy; the block's input stays for the router and the shared gate.
// In attention a byte saved of the norm's result is one more of the context.
TEST(Fp8, ActivationBytesOfExperts) {
  const std::int64_t h = 256, f = 512, k = 2, shared = 128;
  const std::int64_t wide = kept_per_layer(mixtral(1), {}), narrow = kept_per_layer(mixtral(1), fp8());
  EXPECT_EQ(wide - narrow, t * k * f + t * (shared - h));
}

// Parts of the sequence are kept in one byte: the inputs of column-split layers before they are gathered.
TEST(Fp8, ActivationBytesWithSequenceParallelism) {
  const std::int64_t h = 256, f = 512;
  const TrainingSetup split{.tensor_parallel = 2, .sequence_parallel = true};
  EXPECT_EQ(kept_per_layer(llama(1), split) - kept_per_layer(llama(1), fp8(split)), t * (2 * h + f - h) / 2);
}

// Before the step: 14 bytes per parameter, 2 more for those in fp8 (cast and transposed), and 5 histories of 1,024 with
// a scale and its inverse for each matrix in fp8. ZeRO stage 3 keeps no fp8 weights.
TEST(Fp8, WeightsAreAlsoKeptInFp8) {
  const ModelSpec model = llama(2);
  const std::int64_t matrices = 2 * 7, in_fp8 = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512);
  const std::int64_t scaling = matrices * 5 * 1026 * 4, angles = 2 * 2 * s * 32;
  EXPECT_EQ(memory_of(generate(model, fp8())).before, 14 * parameter_count(model) + 2 * in_fp8 + scaling + angles);
  EXPECT_EQ(memory_of(generate(model, fp8({.data_parallel = 2, .zero_stage = 3}))).before,
            14 * parameter_count(model) / 2 + scaling + angles);
}

// Weights are cast once in a step, x and gradients once per product pair: q, k and v share a cast, so do gate and up.
TEST(Fp8, CastsOfAStep) {
  const std::int64_t layers = 2;
  for (const std::int64_t m : {1, 3}) {
    const auto counts = kernels(generate(llama(layers), fp8({.gradient_accumulation = m})));
    EXPECT_EQ(counts.at("cast_transpose_fp8"), layers * (7 + m * (4 + 7)));
    EXPECT_EQ(counts.at("fp8_update_scales"), 2 * m);
    EXPECT_EQ(counts.contains("cast_fp8"), false);
  }
  // ZeRO stage 3: every use of a weight has a cast of its own.
  const auto shared = kernels(generate(llama(layers), fp8({.data_parallel = 2, .zero_stage = 3})));
  EXPECT_EQ(shared.at("cast_transpose_fp8"), layers * (4 + 7));
  EXPECT_EQ(shared.at("cast_fp8"), layers * 2 * 7);
  EXPECT_EQ(shared.at("all_reduce_amax"), 2);
}

// Biases' gradients come out of the cast of the gradient.
TEST(Fp8, BiasGradientsAreFused) {
  ModelSpec gpt = find_model("gpt2-small");
  gpt.layers = 2;
  const auto wide = kernels(generate(gpt, {})), narrow = kernels(generate(gpt, fp8()));
  EXPECT_EQ(wide.at("bias_gradient"), 2 * 4);
  EXPECT_EQ(narrow.contains("bias_gradient"), false);
  EXPECT_EQ(narrow.at("cast_transpose_bias_fp8"), 2 * 4);
}

// The same products, and on a GPU with twice the peak in fp8 less time for large ones. Router, gates and head stay.
TEST(Fp8, SameProductsInLessTime) {
  for (const ModelSpec& model : {llama(2), mixtral(2)}) {
    std::map<bool, std::int64_t> flops, time;
    for (const bool narrow : {false, true}) {
      const Trace trace = generate(model, narrow ? fp8() : TrainingSetup{});
      for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        flops[narrow] += trace.ops.flops[i].count();
        if (trace.ops.flops[i].count() > 0) time[narrow] += trace.ops.duration[i].count();
      }
    }
    EXPECT_EQ(flops[false], flops[true]);
    EXPECT_LT(time[true], time[false]);
  }
}

TEST(Fp8, EverySetUpRuns) {
  for (ModelSpec model : {llama(2), mixtral(2), find_model("deepseek-v2-lite"), find_model("t5-small")}) {
    model.layers = std::min<std::int64_t>(model.layers, 2);
    model.encoder_layers = std::min<std::int64_t>(model.encoder_layers, 2);
    for (const std::int64_t stage : {0, 1, 2, 3})
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        const TrainingSetup setup{.recompute = recompute,
                                  .framework = stage < 2 ? Framework::megatron_2022 : Framework::eager,
                                  .tensor_parallel = 2,
                                  .sequence_parallel = stage % 2 == 1,
                                  .data_parallel = 2,
                                  .zero_stage = stage};
        EXPECT_EQ(memory_of(generate(model, fp8(setup))).left, 0);
      }
  }
}

TEST(Fp8, NeedsAGpuThatHasIt) {
  HardwareProfile old = example_profile();
  old.gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::fp8)] = {};
  EXPECT_THROW(generate_trace(llama(1), fp8(), CostModel(old), {}), InputError);
}

}  // namespace
}  // namespace spillway::models
