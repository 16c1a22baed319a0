#include <algorithm>

#include <gtest/gtest.h>

#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"

namespace spillway::sim {
namespace {

ModelSpec gpt(std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  model.hidden = 256;
  model.heads = model.kv_heads = 8;
  model.head_dim = 32;
  model.feed_forward = 1024;
  model.vocabulary = 512;
  model.max_positions = 256;
  return model;
}

// 10 us and 100 GB/s within a machine, 25 GB/s between.
Cluster slow_network() {
  return {4, [](NetworkCollective, Bytes bytes, const GroupShape& group) {
            return microseconds(10) + Picos(bytes.count() * (group.ranks > group.per_machine ? 40 : 10));
          }};
}

Result replay_of(const ModelSpec& model, const TrainingSetup& setup, RankScope scope) {
  const HardwareProfile hardware = example_profile();
  ReplayOptions options;
  options.memory.allocator = "torch";
  return replay(generate_parallel_trace(model, setup, CostModel(hardware), slow_network(), scope), hardware, options);
}

TrainingSetup small(TrainingSetup setup) {
  setup.sequence = 128;
  setup.micro_batch = 2;
  return setup;
}

const TrainingSetup layouts[] = {
    {.tensor_parallel = 4},
    {.gradient_accumulation = 2, .data_parallel = 4, .bucket_bytes = 1 << 18},
    {.gradient_accumulation = 2, .data_parallel = 4, .zero_stage = 3},
    {.gradient_accumulation = 2, .data_parallel = 4, .zero_stage = 3, .shard_groups = 2},
    {.gradient_accumulation = 2, .tensor_parallel = 2, .data_parallel = 4, .zero_stage = 1, .shard_groups = 2},
    {.gradient_accumulation = 4, .context_parallel = 2, .pipeline_parallel = 2},
    {.gradient_accumulation = 6,
     .framework = Framework::megatron_2022,
     .tensor_parallel = 2,
     .sequence_parallel = true,
     .pipeline_parallel = 2,
     .data_parallel = 2,
     .zero_stage = 1},
    {.gradient_accumulation = 8,
     .recompute = Recompute::full,
     .framework = Framework::megatron_2022,
     .tensor_parallel = 2,
     .pipeline_parallel = 4,
     .pipeline_chunks = 2,
     .data_parallel = 2,
     .overlap_gradients = false},
};

// Ranks of a group are alike: simulating all of them, each waiting for its peers in every collective, gives the step
// time, the idle share and the peaks of one rank per stage.
TEST(ParallelReplay, OneRankStandsForItsPeers) {
  for (const TrainingSetup& layout : layouts) {
    const TrainingSetup setup = small(layout);
    const Result one = replay_of(gpt(8), setup, RankScope::representative);
    const Result all = replay_of(gpt(8), setup, RankScope::all);
    EXPECT_EQ(one.step_time, all.step_time);
    EXPECT_EQ(one.memory.peak_allocated, all.memory.peak_allocated);
    EXPECT_EQ(one.memory.peak_reserved, all.memory.peak_reserved);
    EXPECT_NEAR(one.bubble.value(), all.bubble.value(), 1e-9);
    const std::size_t stages = static_cast<std::size_t>(setup.pipeline_parallel);
    const std::size_t peers = static_cast<std::size_t>(setup.gpus()) / stages;
    ASSERT_EQ(all.ranks.size(), peers * stages);
    if (stages == 1) continue;
    ASSERT_EQ(one.ranks.size(), stages);
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
      EXPECT_EQ(all.ranks[r].peak_allocated, one.ranks[r / peers].peak_allocated);
      EXPECT_EQ(all.ranks[r].compute_busy, one.ranks[r / peers].compute_busy);
    }
  }
}

// The same of an encoder and a decoder in stages of their own, where two tensors go from stage to stage.
TEST(ParallelReplay, OneRankStandsForItsPeersWithAnEncoder) {
  ModelSpec model = gpt(4);
  model.fused_qkv = false;
  model.encoder_layers = 2;
  for (const std::int64_t split : {1, 2}) {
    const TrainingSetup setup = small({.gradient_accumulation = 6,
                                       .framework = Framework::megatron_2022,
                                       .tensor_parallel = 2,
                                       .sequence_parallel = split == 1,
                                       .pipeline_parallel = 4,
                                       .pipeline_split = split,
                                       .data_parallel = 2});
    const Result one = replay_of(model, setup, RankScope::representative);
    const Result all = replay_of(model, setup, RankScope::all);
    EXPECT_EQ(one.step_time, all.step_time);
    EXPECT_EQ(one.memory.peak_allocated, all.memory.peak_allocated);
    EXPECT_NEAR(one.bubble.value(), all.bubble.value(), 1e-9);
  }
}

// The same where experts are spread over ranks, split over tensors and shared out by ZeRO.
TEST(ParallelReplay, OneRankStandsForItsPeersWithExperts) {
  ModelSpec model = find_model("deepseek-v2-lite");
  model.layers = 2, model.hidden = 128, model.heads = model.kv_heads = 4, model.vocabulary = 1000;
  model.feed_forward = 256;
  model.experts = {.count = 8, .active = 2, .width = 128, .shared_width = 64, .first_dense_layers = 1};
  for (const std::int64_t stage : {0, 1, 2, 3})
    for (const std::int64_t groups : {1, 2}) {  // of two, a rank's experts are its own within the group
      TrainingSetup setup = small({.tensor_parallel = 2,
                                   .sequence_parallel = stage > 1,
                                   .data_parallel = 4,
                                   .expert_parallel = 2,
                                   .zero_stage = stage,
                                   .shard_groups = groups});
      const Result one = replay_of(model, setup, RankScope::representative);
      const Result all = replay_of(model, setup, RankScope::all);
      EXPECT_EQ(one.step_time, all.step_time) << stage << " " << groups;
      EXPECT_EQ(one.memory.peak_allocated, all.memory.peak_allocated) << stage << " " << groups;
    }
}

// A lone GPU's trace by way of stages is the trace written in one go: same time, same peak.
TEST(ParallelReplay, OneGpuIsTheSameEitherWay) {
  const TrainingSetup setup = small({.gradient_accumulation = 5});
  const HardwareProfile hardware = example_profile();
  const Result direct = replay(generate_trace(gpt(4), setup, CostModel(hardware)), hardware, {});
  const Result staged = replay_of(gpt(4), setup, RankScope::representative);
  EXPECT_EQ(direct.step_time, staged.step_time);
  EXPECT_EQ(direct.memory.peak_allocated, staged.memory.peak_allocated);
}

// Stages of equal layers, long kernels, no time for transfers: 1F1B idles (p - 1) / (m + p - 1) of the time,
// interleaved (p - 1) / (v m + p - 1). What is left: embedding, head, optimizer and launches, a few percent.
TEST(ParallelReplay, BubbleOfEqualStages) {
  ModelSpec model = gpt(8);
  model.hidden = 2048;
  model.head_dim = 256;
  model.feed_forward = 8192;
  model.vocabulary = 16;
  const HardwareProfile hardware = example_profile();
  const Cluster free{8, [](NetworkCollective, Bytes, const GroupShape&) { return Picos(1); }};
  for (const std::int64_t v : {1, 2}) {
    TrainingSetup setup{.micro_batch = 128,
                        .sequence = 256,
                        .gradient_accumulation = 16,
                        .optimizer = OptimizerKind::sgd,
                        .pipeline_parallel = 4,
                        .pipeline_chunks = v};
    const Result result = replay(generate_parallel_trace(model, setup, CostModel(hardware), free), hardware, {});
    EXPECT_NEAR(result.bubble.value(), 3.0 / (16.0 * static_cast<double>(v) + 3), 0.02);
  }
}

// Overlapped with the backward, the gradients' reduction costs less than after it, and never less than nothing.
TEST(ParallelReplay, OverlapHidesTheReduction) {
  TrainingSetup setup = small({.data_parallel = 4, .bucket_bytes = 1 << 18});
  setup.micro_batch = 128;
  const Picos overlapped = replay_of(gpt(8), setup, RankScope::representative).step_time;
  setup.overlap_gradients = false;
  const Picos after = replay_of(gpt(8), setup, RankScope::representative).step_time;
  setup.data_parallel = 1;
  const Picos alone = replay_of(gpt(8), setup, RankScope::representative).step_time;
  EXPECT_LT(overlapped, after);
  EXPECT_LT(alone, overlapped);
}

// Every rank's host waits for its own device alone: what one stage does never holds up another but by transfers.
TEST(ParallelReplay, StagesAreListed) {
  const Result result =
      replay_of(gpt(4), small({.gradient_accumulation = 4, .pipeline_parallel = 4}), RankScope::representative);
  ASSERT_EQ(result.ranks.size(), 4u);
  EXPECT_EQ(result.ranks[2].name, "stage 2");
  Bytes most{};
  for (const RankResult& rank : result.ranks) {
    most = std::max(most, rank.peak_reserved);
    EXPECT_GT(rank.bubble.value(), 0);
    EXPECT_LT(rank.bubble.value(), 1);
  }
  EXPECT_EQ(result.memory.peak_reserved, most);
}

}  // namespace
}  // namespace spillway::sim
