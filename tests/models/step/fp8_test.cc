// fp8 linear layers: bytes kept and held, kernels, and the scales' upkeep.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"

#include "hwprofiles/profile_library.h"
#include "models/spec/model_part.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::fp8 {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;

Trace generate(const ModelSpec& model, TrainingSetup setup) {
  setup.sequence = s;
  setup.micro_batch = b;
  const bool is_fp4 = setup.precision == TrainingPrecision::nvfp4_mixed;  // which the example has no unit for
  const HardwareProfile profile =
      is_fp4 ? ProfileLibrary::standard().load_system("b200-180gb-1gpu") : example_profile();
  Trace trace = generate_trace(model, setup, CostModel(profile), flat_cluster());
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

// Gathered inputs of column-split layers are kept in one byte.
TEST(Fp8, ActivationBytesWithSequenceParallelism) {
  const std::int64_t h = 256, f = 512;
  const TrainingSetup split{.tensor_parallel = 2, .sequence_parallel = true};
  EXPECT_EQ(kept_per_layer(llama(1), split) - kept_per_layer(llama(1), fp8(split)), t * 2 * h + t * (f - h) / 2);
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

// Scales of the tensors themselves: each cast, of activations, gradients and weights, has a pass for the largest value
// before it, and nothing is kept up.
TEST(Fp8Recipes, TensorwiseLooksForTheLargestValueFirst) {
  const std::int64_t layers = 2;
  TrainingSetup setup = fp8();
  setup.fp8_recipe = Fp8Recipe::tensorwise;
  const auto counts = kernels(generate(llama(layers), setup));
  EXPECT_EQ(counts.at("cast_transpose_fp8"), layers * (7 + 4 + 7));
  EXPECT_EQ(counts.at("amax_fp8"), counts.at("cast_transpose_fp8"));
  EXPECT_FALSE(counts.contains("fp8_update_scales"));
}

// What both products read has another scale along each: inputs are kept in 16 bits, as without fp8, and cast for the
// weight gradient when that is due.
TEST(Fp8Recipes, RowwiseKeepsInputsInSixteenBits) {
  TrainingSetup setup = fp8();
  setup.fp8_recipe = Fp8Recipe::rowwise;
  EXPECT_EQ(kept_per_layer(llama(1), setup), kept_per_layer(llama(1), {}));
  const auto counts = kernels(generate(llama(2), setup));
  // Weights both ways, inputs (one of q, k and v, one of gate and up) and gradients.
  EXPECT_EQ(counts.at("amax_columns_fp8"), 2 * (7 + 4 + 7));
  EXPECT_EQ(counts.at("cast_fp8"), counts.at("amax_columns_fp8") + 2 * (7 + 4 + 7));
  EXPECT_FALSE(counts.contains("cast_transpose_fp8"));
}

// Of columns of activations, whatever their width, by torch.compile; a weight has few rows.
TEST(Fp8Recipes, LargestValuesOfColumnsTakeTheirTimeByRow) {
  TrainingSetup setup = fp8();
  setup.fp8_recipe = Fp8Recipe::rowwise;
  setup.sequence = 4096, setup.micro_batch = 2;
  const Trace trace = generate_trace(llama(1), setup, CostModel(example_profile()), flat_cluster());
  std::int64_t by_row = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]) == "amax_columns_fp8" &&
        trace.ops.duration[i] == nanoseconds(23) * (4096 * 2))
      ++by_row;
  EXPECT_EQ(by_row, 4 + 7);  // inputs and gradients
}

TEST(Fp8Recipes, BlocksAreCastBothWaysInOnePass) {
  for (const Fp8Recipe recipe : {Fp8Recipe::blockwise, Fp8Recipe::mxfp8}) {
    TrainingSetup setup = fp8();
    setup.fp8_recipe = recipe;
    const auto counts = kernels(generate(llama(2), setup));
    EXPECT_EQ(counts.at("cast_transpose_fp8"), 2 * (7 + 4 + 7));
    EXPECT_FALSE(counts.contains("amax_fp8"));
    EXPECT_FALSE(counts.contains("fp8_update_scales"));
    EXPECT_EQ(kept_per_layer(llama(1), setup), kept_per_layer(llama(1), fp8()));
  }
}

// On Hopper a product with a scale per block takes longer than one with a scale per tensor, one with a scale per row
// longest; bf16 as long as ever.
TEST(Fp8Recipes, HopperPaysForFineScales) {
  const CostModel cost(ProfileLibrary::standard().load_system("dgx-h100"));
  const auto time = [&cost](ProductScaling scaling, DataType type) {
    const GemmShape shape{.m = 8192, .n = 8192, .k = 8192};
    return cost
        .duration({.kind = KernelClass::gemm,
                   .type = type,
                   .gemm = shape,
                   .flops = Flops(2 * shape.m * shape.n * shape.k),
                   .is_cast_before = true,
                   .scaling = scaling})
        .time;
  };
  EXPECT_LT(time(ProductScaling::tensor, DataType::fp8), time(ProductScaling::block, DataType::fp8));
  EXPECT_LT(time(ProductScaling::block, DataType::fp8), time(ProductScaling::row, DataType::fp8));
  EXPECT_EQ(time(ProductScaling::row, DataType::bf16), time(ProductScaling::tensor, DataType::bf16));
}

// Two values a byte and a byte of scale for 16 of them, of a product's inputs and of copies of weights.
TEST(Nvfp4, KeepsFourBitsAndAScale) {
  const TrainingSetup four{.precision = TrainingPrecision::nvfp4_mixed};
  const std::int64_t h = 256, f = 512, in_fp8 = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512);
  // Inputs of q, k and v, of the output projection, of gate and up, and of down.
  EXPECT_EQ(kept_per_layer(llama(1), fp8()) - kept_per_layer(llama(1), four), t * (3 * h + f) * 7 / 16);
  const std::int64_t scaling = 2 * 7 * 5 * 1026 * 4;
  EXPECT_EQ(memory_of(generate(llama(2), fp8())).before - memory_of(generate(llama(2), four)).before,
            2 * in_fp8 * 7 / 16 + scaling);
  const auto counts = kernels(generate(llama(2), four));
  EXPECT_EQ(counts.at("amax_fp4"), counts.at("cast_transpose_fp4"));
}

// A layer at an end has the products, the copies and the kept inputs of 16 bits.
TEST(Nvfp4, LayersAtTheEndsStayInSixteenBits) {
  const TrainingSetup four{.precision = TrainingPrecision::nvfp4_mixed};
  TrainingSetup ends = four;
  ends.bf16_layers_last = 1;
  const std::int64_t last = kept_per_layer(llama(2), ends);
  EXPECT_EQ(last, kept_per_layer(llama(2), four));  // the layer more is in the middle
  ends.bf16_layers_first = 2;
  EXPECT_EQ(kept_per_layer(llama(1), ends), kept_per_layer(llama(1), {.precision = TrainingPrecision::bf16_mixed}));
  ends.bf16_layers_first = 1;
  const std::int64_t copies = 2 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 256 * 512) * 9 / 16;
  EXPECT_EQ(memory_of(generate(llama(3), four)).before - memory_of(generate(llama(3), ends)).before, 2 * copies);
  EXPECT_THROW(generate(llama(2), {.bf16_layers_last = 1}), InputError);
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
}  // namespace spillway::models::fp8
