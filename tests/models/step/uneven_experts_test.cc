// Steps whose experts' rows are drawn: tensors, times and the allocator's history against ExpertLoad and even steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/spec/expert_load.h"
#include "models/step/parallel_trace.h"
#include "models/step/trace_generator.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/start_up_order.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::uneven_experts {
namespace {

constexpr std::int64_t h = 256, f = 512, S = 64, b = 2, T = S * b, k = 2, E = 8;

ModelSpec experts(std::int64_t layers) {
  ModelSpec model = find_model("mixtral-8x7b");
  model.layers = layers, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1024, model.feed_forward = f;
  model.experts = {.count = E, .active = k, .width = f};
  return model;
}

TrainingSetup spread(double cv, Framework framework = Framework::megatron) {
  TrainingSetup setup{.micro_batch = b, .sequence = S, .gradient_accumulation = 7, .framework = framework};
  setup.data_parallel = setup.expert_parallel = 4;
  setup.expert_load = ExpertSpread::lognormal;
  setup.expert_load_cv = cv;
  setup.expert_load_steps = 0;
  return setup;
}

Trace generate(const ModelSpec& model, const TrainingSetup& setup) {
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

std::vector<std::int64_t> bytes_of(const Trace& trace, std::string_view name) {
  std::vector<std::int64_t> bytes;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.strings.text(trace.tensors.name[i]) == name) bytes.push_back(trace.tensors.bytes[i].count());
  return bytes;
}

// Rows of the rank shown, in every layer and micro-batch.
TEST(UnevenExperts, TensorsHaveTheDrawnRows) {
  for (const Framework framework : {Framework::megatron, Framework::eager}) {
    const ModelSpec model = experts(2);
    const TrainingSetup setup = spread(0.6, framework);
    const Trace trace = generate(model, setup);
    ExpertLoad load(model, setup);
    load.show_fullest({0, 1}, 7);
    const bool merged = framework == Framework::megatron;
    for (const std::int64_t layer : {0, 1}) {
      const std::string name = "layers." + std::to_string(layer) + ".mlp.experts." + (merged ? "gate_up" : "up");
      std::vector<std::int64_t> expected;
      for (std::int64_t pass = 0; pass < 7; ++pass)
        expected.push_back(load.rows(layer, pass, T).own * (merged ? 2 : 1) * f * 2);
      EXPECT_EQ(bytes_of(trace, name + ".out"), expected) << name;
    }
  }
}

// Products of the fullest rank: 2 rows h f flops each, three of them (two merged), and twice that backwards.
TEST(UnevenExperts, ProductsTakeTheFullestRanksRows) {
  const ModelSpec model = experts(2);
  const TrainingSetup setup = spread(0.6);
  const Trace trace = generate(model, setup);
  const ExpertLoad load(model, setup);
  std::int64_t fullest = 0, measured = 0;
  for (const std::int64_t layer : {0, 1})
    for (std::int64_t pass = 0; pass < 7; ++pass) fullest += load.rows(layer, pass, T).fullest;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]).starts_with("grouped_gemm")) measured += trace.ops.flops[i].count();
  EXPECT_NEAR(static_cast<double>(measured) / static_cast<double>(3 * 3 * 2 * fullest * h * f), 1, 1e-3);
}

// Draws that are as good as even give the even step, though every micro-batch is recorded and not only four.
TEST(UnevenExperts, NextToEvenDrawsGiveTheEvenStep) {
  for (const std::int64_t stages : {1, 2}) {
    TrainingSetup setup = spread(1e-7);
    setup.pipeline_parallel = stages;
    const Trace drawn = generate(experts(4), setup);
    setup.expert_load = ExpertSpread::even;
    const Trace even = generate(experts(4), setup);
    ASSERT_EQ(drawn.ops.size(), even.ops.size());
    ASSERT_EQ(drawn.memory_events.size(), even.memory_events.size());
    EXPECT_GE(drawn.edges.size(), even.edges.size());  // of every recorded read of a weight to its update
    for (std::size_t i = 0; i < drawn.memory_events.size(); ++i) {
      EXPECT_EQ(drawn.memory_events[i].bytes, even.memory_events[i].bytes);
      EXPECT_EQ(drawn.memory_events[i].action, even.memory_events[i].action);
    }
    for (std::size_t i = 0; i < drawn.ops.size(); ++i) EXPECT_EQ(drawn.ops.duration[i], even.ops.duration[i]);
  }
}

// One after another on one GPU: each expert has its own rows.
TEST(UnevenExperts, LoopedExpertsHaveRowsOfTheirOwn) {
  const ModelSpec model = experts(1);
  TrainingSetup setup = spread(0.6, Framework::huggingface);
  setup.data_parallel = setup.expert_parallel = setup.gradient_accumulation = 1;
  const Trace trace = generate(model, setup);
  const ExpertRows rows = ExpertLoad(model, setup).rows(0, 0, T);
  std::vector<std::int64_t> expected;
  for (const std::int64_t each : rows.local) expected.push_back(std::max<std::int64_t>(1, each) * h * 2);
  EXPECT_EQ(bytes_of(trace, "layers.0.mlp.experts.rows"), expected);
}

sim::AllocationStreamResult allocate(const Trace& trace) {
  return sim::replay_allocation_stream(trace, {.pool = {.policy = "torch"}});
}

// Of the steps before the one shown, one after the other.
std::vector<std::map<TensorId, Bytes>> sizes_before(const Trace& trace) {
  std::map<std::uint32_t, std::map<TensorId, Bytes>> steps;
  for (const StartUpEvent& event : trace.start_up)
    if (sim::is_size_before(event)) steps[event.block][event.tensor] = event.bytes;
  std::vector<std::map<TensorId, Bytes>> sizes;
  for (const auto& [number, step] : steps) sizes.push_back(step);
  return sizes;
}

// Steps before leave blocks of other sizes in the cache.
TEST(UnevenExperts, StepsBeforeAreThePoolsHistory) {
  TrainingSetup setup = spread(0.8);
  setup.sequence = 1024;
  const Trace alone = generate(experts(4), setup);
  EXPECT_TRUE(sizes_before(alone).empty());
  setup.expert_load_steps = 3;
  const Trace after = generate(experts(4), setup);
  ASSERT_EQ(alone.ops.size(), after.ops.size());
  ASSERT_EQ(sizes_before(after).size(), 3U);
  EXPECT_NE(sizes_before(after)[0], sizes_before(after)[1]);
  EXPECT_GE(allocate(after).statistics.all().reserved_bytes.peak, allocate(alone).statistics.all().reserved_bytes.peak);
}

// The step before is the step of its own seed, tensor by tensor: whatever program runs it, in whatever order.
TEST(UnevenExperts, TheStepBeforeIsThatOfItsSeed) {
  struct Way {
    Framework framework;
    const char* schedule;
    std::int64_t stages, chunks;
    bool recomputes;
  };
  const std::vector<Way> ways = {{Framework::eager, "1f1b", 1, 1, false},
                                 {Framework::megatron, "1f1b", 2, 1, true},
                                 {Framework::megatron_2022, "interleaved", 2, 2, false},
                                 {Framework::megatron_2021, "gpipe", 2, 1, true},
                                 {Framework::nanotron, "1f1b", 2, 1, false},
                                 {Framework::huggingface, "1f1b", 1, 1, true},
                                 {Framework::megatron, "chronos", 2, 2, false},
                                 {Framework::megatron, "po-h", 2, 2, false},
                                 {Framework::eager, "zb-1p", 2, 1, false},
                                 {Framework::megatron, "zb-v", 2, 2, false},
                                 {Framework::megatron, "gis", 2, 2, true}};
  for (const Way& way : ways) {
    SCOPED_TRACE(testing::Message() << std::string(to_string(way.framework)) << " " << way.schedule);
    TrainingSetup setup = spread(0.8, way.framework);
    setup.pipeline_parallel = way.stages, setup.pipeline_chunks = way.chunks, setup.pipeline_schedule = way.schedule;
    setup.gradient_accumulation = 8;
    if (way.recomputes) setup.recompute = Recompute::full;
    if (traits_of(way.framework).transformers) setup.data_parallel = setup.expert_parallel = 1;
    setup.expert_load_steps = 1;
    const Trace step = generate(experts(8), setup);
    setup.expert_load_seed = step_seed(setup.expert_load_seed, 1);
    setup.expert_load_steps = 0;
    const Trace before = generate(experts(8), setup);
    ASSERT_EQ(sizes_before(step).size(), 1U);
    const std::map<TensorId, Bytes> sizes = sizes_before(step)[0];
    // Ids are the same where passes come in the same order; sizes of a name are alike in any.
    std::map<std::string, std::multiset<std::int64_t>> shown, wanted;
    for (const MemoryEvent& event : step.memory_events) {
      if (event.action != MemoryAction::allocate) continue;
      const auto other = sizes.find(event.tensor);
      const Bytes bytes = other == sizes.end() ? event.bytes : other->second;
      shown[std::string(step.strings.text(step.tensors.name[index_of(event.tensor)]))].insert(bytes.count());
    }
    for (const MemoryEvent& event : before.memory_events)
      if (event.action == MemoryAction::allocate)
        wanted[std::string(before.strings.text(before.tensors.name[index_of(event.tensor)]))].insert(
            event.bytes.count());
    EXPECT_EQ(shown, wanted);
  }
}

// As framework-memory.md has it of a prototype: uneven rows fragment, equal shares hide it.
TEST(UnevenExperts, ReserveMoreThanEvenOnes) {
  const auto held_back = [](double cv) {
    TrainingSetup setup = spread(cv);
    setup.sequence = 4096;
    setup.pipeline_parallel = 2;
    setup.expert_load_steps = 2;
    if (cv == 0) setup.expert_load = ExpertSpread::even, setup.expert_load_cv = 0.6;
    const sim::AllocationStreamResult result = allocate(generate(experts(8), setup));
    return result.statistics.all().reserved_bytes.peak - result.statistics.all().allocated_bytes.peak;
  };
  EXPECT_GT(held_back(0.6), 1.2 * static_cast<double>(held_back(0)));
}

}  // namespace
}  // namespace spillway::models::uneven_experts
