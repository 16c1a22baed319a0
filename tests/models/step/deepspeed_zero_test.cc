// DeepSpeed's ZeRO: what its step holds, by the closed forms of models/step/deepspeed_zero.h, and how its weights are
// gathered.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::deepspeed_zero {
namespace {

constexpr std::int64_t width = 512, words = 4096, replicas = 4;

ModelSpec small(std::string_view name = "llama-3-8b", std::int64_t layers = 4) {
  ModelSpec model = find_model(std::string(name));
  model.layers = layers, model.hidden = width, model.heads = 8, model.kv_heads = 2, model.head_dim = 64;
  model.feed_forward = 1024, model.vocabulary = words;
  return model;
}

TrainingSetup zero(std::int64_t stage) {
  return {.sequence = 16,
          .recompute = Recompute::full,
          .framework = Framework::deepspeed,
          .data_parallel = replicas,
          .zero_stage = stage,
          .bucket_bytes = 2'000'000};
}

Trace trace_of(const ModelSpec& model, const TrainingSetup& setup) {
  HardwareProfile profile = example_profile();
  profile.host.cpu_adam_parameters_per_second = {.value = 1e9};
  Trace trace = generate_trace(model, setup, CostModel(profile), flat_cluster());
  trace.check_invariants();
  return trace;
}

// The most bytes alive on the first GPU, in the update or before it.
std::int64_t most_bytes(const Trace& trace, bool in_update) {
  std::int64_t live = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action == MemoryAction::free_completed || event.device != 0) continue;
    live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
    const bool is_update = event.anchor != OpId::none && trace.ops.phase[index_of(event.anchor)] == Phase::optimizer;
    if (is_update == in_update) most = std::max(most, live);
  }
  return most;
}

std::int64_t count_of(const Trace& trace, std::string_view name) {
  std::int64_t count = 0;
  for (const StringId each : trace.ops.name)
    if (trace.strings.text(each) == name) ++count;
  return count;
}

// 2 N + 20 s, and the gradients of a parameter over the edge; the foreach update's root of the second moments besides.
TEST(DeepspeedZero, StagesOneAndTwoHoldTwentyBytesOfAShare) {
  const ModelSpec model = small();
  const std::int64_t all = parameter_count(model), share = all / replicas;
  for (const std::int64_t stage : {1, 2}) {
    for (const bool foreach : {false, true}) {
      TrainingSetup setup = zero(stage);
      setup.optimizer_form = foreach ? OptimizerForm::foreach : OptimizerForm::fused;
      const std::int64_t expected = 2 * all + (foreach ? 22 : 20) * share + 2 * words * width;
      const std::int64_t found = most_bytes(trace_of(model, setup), true);
      EXPECT_NEAR(static_cast<double>(found), static_cast<double>(expected), 0.01 * static_cast<double>(expected));
    }
  }
}

// 16 s and the bucket, and by sub-group the larger of flat gradient and cast, cast and root.
TEST(DeepspeedZero, StageThreeUpdatesBySubGroup) {
  const ModelSpec model = small();
  const std::int64_t share = parameter_count(model) / replicas;
  for (const bool foreach : {false, true}) {
    for (const std::int64_t parts : {1, 4}) {
      TrainingSetup setup = zero(3);
      setup.optimizer_form = foreach ? OptimizerForm::foreach : OptimizerForm::fused;
      setup.sub_group = share / parts;
      const Trace trace = trace_of(model, setup);
      const std::int64_t most = most_bytes(trace, true) - 16 * share - setup.bucket_bytes;
      const std::int64_t largest = words * width / replicas;  // a sub-group ends behind the parameter that fills it
      EXPECT_GE(most, (foreach ? 8 : 6) * (share / parts) - share / 10);
      EXPECT_LE(most, (foreach ? 8 : 6) * (share / parts + largest) + share / 10);
    }
  }
  TrainingSetup gathered = zero(3);
  EXPECT_EQ(gathered.model_state_bytes_per_parameter(), 16);
}

// Five linears of a layer, as keys' and values' are so small that they stay whole; the head; the embedding, whose
// backward asks for it again.
TEST(DeepspeedZero, EachModuleIsGatheredByItself) {
  const std::int64_t layers = 4;
  TrainingSetup setup = zero(3);
  const Trace plain = trace_of(small("llama-3-8b", layers), setup);
  // So small a model stays gathered over the turn but for what lies furthest from it.
  EXPECT_EQ(count_of(plain, "all_gather_weights"), 5 * layers + 3);
  ModelSpec wide = small("llama-3-8b", layers);
  wide.feed_forward = 400'000;  // its layers don't
  EXPECT_EQ(count_of(trace_of(wide, setup), "all_gather_weights"), 5 * layers * 2 - 5 + 3);
  EXPECT_EQ(count_of(plain, "all_reduce_gradients"), 0);
  setup.zero_stage = 2;
  EXPECT_EQ(count_of(trace_of(small(), setup), "reduce_scatter_gradients"), 0);
}

// A gather costs the host its own time: experts apart take theirs each, as one leaf once.
TEST(DeepspeedZero, ExpertsAreGatheredOneByOneUnlessTheyAreALeaf) {
  ModelSpec model = find_model("qwen3-30b-a3b");
  model.layers = 1;
  TrainingSetup setup = zero(3);
  const auto time = [&] {
    Picos sum{};
    const Trace trace = trace_of(model, setup);
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]) == "fetch weights") sum += trace.ops.duration[i];
    return to_seconds(sum);
  };
  const double apart = time();
  setup.leaf_modules = true;
  EXPECT_GT(apart, 20 * time());
}

TEST(DeepspeedZero, BucketsOfTwoTakeTurnsWhereReductionsOverlap) {
  TrainingSetup setup = zero(2);
  const ModelSpec model = small();
  const auto buckets = [&] {
    const Trace trace = trace_of(model, setup);
    std::int64_t count = 0;
    for (const StringId name : trace.tensors.name) count += trace.strings.text(name) == "gradients.bucket" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(buckets(), 2);
  setup.overlap_gradients = false;
  EXPECT_EQ(buckets(), 1);
}

TEST(DeepspeedZero, FrozenLayersKeepNoInputsToTheEnd) {
  TrainingSetup setup = zero(3);
  setup.sequence = 16'384;
  setup.trainable = Trainable::lora;
  setup.loss = LossForm::chunked;
  const auto most = [&](Framework framework) {
    setup.framework = framework;
    setup.bucket_bytes = framework == Framework::deepspeed ? 2'000'000 : 0;
    return most_bytes(trace_of(small("llama-3-8b", 16), setup), false);
  };
  EXPECT_LT(most(Framework::deepspeed) + 10 * width * 2 * 16'384, most(Framework::huggingface));
}

// In host memory fp32 weights, gradients and moments, gradients in 16 bits, and under stage 2 weights in 16 bits;
// gradients leave in every micro-batch, and none of them wait on the GPU.
TEST(DeepspeedZero, TheHostHasEighteenOrTwentyBytes) {
  const ModelSpec model = small();
  const std::int64_t share = parameter_count(model) / replicas, micro_batches = 3;
  for (const std::int64_t stage : {2, 3}) {
    TrainingSetup setup = zero(stage);
    setup.optimizer_device = StateDevice::cpu;
    setup.gradient_accumulation = micro_batches;
    const Trace trace = trace_of(model, setup);
    std::int64_t on_host = 0, left = 0;
    for (const MemoryEvent& event : trace.memory_events)
      if (event.device < 0 && event.action == MemoryAction::allocate &&
          trace.strings.text(trace.tensors.name[index_of(event.tensor)]) != "host.weight_buffer")
        on_host += event.bytes.count();
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]) == "gradients_to_host") left += trace.ops.bytes[i].count();
    EXPECT_NEAR(static_cast<double>(on_host) / static_cast<double>(share), stage == 3 ? 18 : 20, 0.01);
    EXPECT_NEAR(static_cast<double>(left) / static_cast<double>(share), 2 * micro_batches, 0.01);
    EXPECT_LT(most_bytes(trace, true), (stage == 3 ? 3 : 9) * share);  // weights alone
  }
}

// Weights are there when they are used, in every architecture, and all is given back.
TEST(DeepspeedZero, EveryModelHasItsWeights) {
  std::int64_t generated = 0;
  for (const std::string& name : bundled_models()) {
    ModelSpec model = find_model(name);
    model.layers = std::min<std::int64_t>(2, model.layers);
    model.encoder_layers = std::min<std::int64_t>(1, model.encoder_layers);
    for (const std::int64_t stage : {2, 3})
      for (const Trainable trainable : {Trainable::full, Trainable::lora})
        for (const Recompute recompute : {Recompute::none, Recompute::full}) {
          TrainingSetup setup = zero(stage);
          setup.trainable = trainable;
          setup.recompute = recompute;
          if (model.reads_images()) setup.sequence = 0;
          try {
            EXPECT_EQ(memory_of(trace_of(model, setup)).left, 0) << name;
            ++generated;
          } catch (const InputError& error) {
            EXPECT_FALSE(error.cause().empty());
          }
        }
  }
  EXPECT_GT(generated, 800);
}

TEST(DeepspeedZero, OtherSplitsAreRefused) {
  TrainingSetup setup = zero(2);
  setup.tensor_parallel = 2;
  EXPECT_THROW(static_cast<void>(resolve(setup, small())), InputError);
  setup = zero(2);
  setup.late_reduction = true;
  EXPECT_THROW(static_cast<void>(resolve(setup, small())), InputError);
}

}  // namespace
}  // namespace spillway::models::deepspeed_zero
