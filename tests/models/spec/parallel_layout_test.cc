#include "models/spec/parallel_layout.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/field_setter.h"
#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "models/spec/pipeline_setup.h"
#include "models/spec/training_setup_fields.h"

namespace spillway::models {
namespace {

ModelSpec layers_of(std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  return model;
}

TrainingSetup pipeline(std::int64_t p, std::int64_t m, std::int64_t v = 1) {
  return {.gradient_accumulation = m, .pipeline_parallel = p, .pipeline_chunks = v};
}

ParallelLayout layout_of(const TrainingSetup& setup, const ModelSpec& model) {
  return ParallelLayout(setup, model, 8, plan_of(setup));
}

// Runs every stage's order as soon as inputs are there: forward chunks take 1, backward chunks 2; gives the makespan.
std::int64_t makespan(const TrainingSetup& setup) {
  const std::int64_t p = setup.pipeline_parallel, parts = p * setup.pipeline_chunks;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, std::int64_t> done;  // backward, part, micro-batch
  const std::vector<std::vector<PipelineOp>> orders = plan_of(setup).compute;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<std::int64_t> free(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      if (next[stage] == orders[stage].size()) continue;
      const PipelineOp& op = orders[stage][next[stage]];
      const bool is_backward = op.kind == PipelineOpKind::backward;
      const std::int64_t part = op.pass.chunk * p + static_cast<std::int64_t>(stage);
      std::int64_t ready = free[stage];
      const auto after = [&](bool backward, std::int64_t other) {
        const auto found = done.find({backward, other, op.pass.micro_batch});
        if (found == done.end()) return false;
        ready = std::max(ready, found->second);
        return true;
      };
      if (!is_backward && part > 0 && !after(false, part - 1)) continue;
      if (is_backward && !after(part + 1 < parts, part + 1 < parts ? part + 1 : part)) continue;
      free[stage] = done[{is_backward, part, op.pass.micro_batch}] = ready + (is_backward ? 2 : 1);
      ++next[stage];
      moved = true;
    }
  }
  for (std::size_t stage = 0; stage < orders.size(); ++stage) EXPECT_EQ(next[stage], orders[stage].size());
  return *std::max_element(free.begin(), free.end());
}

// Narayanan et al. 2021, section 2.2: the bubble is (p - 1) / m of the ideal time m (tf + tb), interleaved
// (p - 1) / (v m). In chunk times the ideal is v m (tf + tb), so both say: makespan = (v m + p - 1)(tf + tb).
TEST(PipelineOrder, BubblesAreThePublishedOnes) {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {p, 2 * p, 4 * p})
      for (const std::int64_t v : {1, 2, 3}) EXPECT_EQ(makespan(pipeline(p, m, v)), (v * m + p - 1) * 3) << p << m << v;
  TrainingSetup gpipe = pipeline(4, 8);
  gpipe.pipeline_schedule = "gpipe";
  EXPECT_EQ(makespan(gpipe), (8 + 4 - 1) * 3);
}

// Chunk-forwards in flight on the first stage: p under 1F1B, (v + 1) p - 1 interleaved, which is p v times the
// 1 + (p - 1) / (p v) of Korthikanti et al. 2022, section 4.2.3; all m under GPipe.
TEST(PipelineOrder, MicroBatchesInFlight) {
  const auto most = [](const TrainingSetup& setup) {
    std::int64_t live = 0, peak = 0;
    const PipelinePlan plan = plan_of(setup);
    for (const PipelineOp& op : plan.compute[0])
      peak = std::max(peak, live += op.kind == PipelineOpKind::backward ? -1 : 1);
    return peak;
  };
  for (const std::int64_t p : {2, 4, 8}) {
    EXPECT_EQ(most(pipeline(p, 4 * p)), p);
    for (const std::int64_t v : {2, 3, 4}) EXPECT_EQ(most(pipeline(p, 4 * p, v)), p * v + p - 1);
  }
  TrainingSetup gpipe = pipeline(4, 16);
  gpipe.pipeline_schedule = "gpipe";
  EXPECT_EQ(most(gpipe), 16);
}

// In a V stage i holds positions i and 2 p - 1 - i, so the first has both ends of the model, and the last hands over to
// itself. Two directions hold every position twice.
TEST(ParallelLayout, PlacementsOfAPlan) {
  TrainingSetup setup = pipeline(4, 8, 2);
  setup.pipeline_schedule = "zb-v";
  const ParallelLayout v = layout_of(setup, layers_of(16));
  EXPECT_TRUE(v.is_first(0, 0));
  EXPECT_TRUE(v.is_last(0, 1));
  EXPECT_EQ(v.layers(1, 1).first, 2 * 6);
  EXPECT_EQ(v.next(3, 0).stage, 3);
  EXPECT_EQ(v.next(3, 0).chunk, 1);
  EXPECT_EQ(v.previous(2, 1).stage, 3);
  EXPECT_EQ(v.previous(0, 0).stage, -1);
  setup = pipeline(4, 8);
  setup.pipeline_schedule = "chimera";
  const ParallelLayout both = layout_of(setup, layers_of(8));
  EXPECT_EQ(both.chunks(), 2);
  EXPECT_EQ(both.layers(0, 0).first, 0);
  EXPECT_EQ(both.layers(0, 1).first, 6);
  EXPECT_TRUE(both.is_last(0, 1));
  EXPECT_TRUE(both.is_first(3, 1));
}

// 22 layers on 8 stages: the first and the last have one fewer (Qi et al. 2024, table 3). 105 on 35 x 3: one each.
TEST(ParallelLayout, LayersOverStages) {
  const ParallelLayout uneven = layout_of(pipeline(8, 8), layers_of(22));
  std::vector<std::int64_t> counts;
  for (std::int64_t stage = 0; stage < 8; ++stage) counts.push_back(uneven.layers(stage, 0).count);
  EXPECT_EQ(counts, (std::vector<std::int64_t>{2, 3, 3, 3, 3, 3, 3, 2}));
  EXPECT_EQ(uneven.layers(3, 0).first, 8);
  const ParallelLayout chunks = layout_of(pipeline(35, 35, 3), layers_of(105));
  EXPECT_EQ(chunks.layers(4, 2).first, 2 * 35 + 4);
  EXPECT_EQ(chunks.layers(4, 2).count, 1);
  EXPECT_TRUE(chunks.is_last(34, 2));
  EXPECT_FALSE(chunks.is_first(0, 1));
}

// Machines of 8: tensor groups of 8 fill one, data groups then have one rank in each; two stages of tensor 4 share one.
TEST(ParallelLayout, GroupsInMachines) {
  TrainingSetup setup{.tensor_parallel = 8, .pipeline_parallel = 4, .data_parallel = 16};
  const ParallelLayout wide = layout_of(setup, layers_of(12));
  EXPECT_EQ(wide.tensor_group().per_machine, 8);
  EXPECT_EQ(wide.gradient_group().ranks, 16);
  EXPECT_EQ(wide.gradient_group().per_machine, 1);
  EXPECT_EQ(wide.gradient_group().stride, 8);
  EXPECT_EQ(wide.stage_pair(0, 1).per_machine, 1);
  setup = {.tensor_parallel = 2, .context_parallel = 2, .pipeline_parallel = 4, .data_parallel = 1};
  const ParallelLayout narrow = layout_of(setup, layers_of(12));
  EXPECT_EQ(narrow.context_group().per_machine, 2);
  EXPECT_EQ(narrow.stage_pair(0, 1).per_machine, 2);
  EXPECT_EQ(narrow.stage_pair(1, 2).per_machine, 1);
}

TEST(ParallelLayout, WhatDoesNotDivideIsRefused) {
  const ModelSpec gpt = find_model("gpt2-small");  // 12 layers, 12 heads
  EXPECT_THROW(resolve({.tensor_parallel = 5}, gpt), InputError);
  EXPECT_NO_THROW(resolve({.pipeline_parallel = 14}, gpt));  // embedding and head may be stages of their own
  EXPECT_THROW(resolve({.pipeline_parallel = 15}, gpt), InputError);
  EXPECT_THROW(resolve({.pipeline_chunks = 2}, gpt), InputError);
  EXPECT_THROW(resolve(pipeline(4, 6, 2), gpt), InputError);  // interleaving wants a multiple of p micro-batches
  EXPECT_NO_THROW(resolve(pipeline(4, 8, 2), gpt));
  EXPECT_THROW(resolve({.zero_stage = 4}, gpt), InputError);
  EXPECT_THROW(resolve({.flash_attention = false, .context_parallel = 2}, gpt), InputError);
  EXPECT_THROW(resolve({.micro_batch = 2, .global_batch = 10, .data_parallel = 2}, gpt), InputError);
  EXPECT_EQ(resolve({.micro_batch = 2, .global_batch = 64, .data_parallel = 4}, gpt).gradient_accumulation, 8);
}

std::string texts(TrainingSetup setup) {
  FieldTexts texts;
  describe(setup, texts);
  return texts.take();
}

// A stage over one rank is no stage, with weights at home and away.
TEST(ParallelLayout, OneRankSharesNothing) {
  const ModelSpec gpt = find_model("gpt2-small");
  for (const StateDevice weights : {StateDevice::gpu, StateDevice::cpu})
    for (const TrainingSetup& also :
         {TrainingSetup{.optimizer_device = StateDevice::cpu}, TrainingSetup{.optimizer_device = StateDevice::drives},
          TrainingSetup{.framework = Framework::megatron, .tensor_parallel = 2, .optimizer_device = StateDevice::cpu},
          TrainingSetup{.gradient_accumulation = 4, .pipeline_parallel = 2, .optimizer_device = StateDevice::cpu}}) {
      TrainingSetup setup = also;
      setup.weight_device = weights;
      const std::string none = texts(resolve(setup, gpt));
      EXPECT_EQ(resolve(setup, gpt).zero_stage, weights == StateDevice::gpu ? 0 : 3);
      for (const std::int64_t stage : {1, 2, 3})
        for (const bool tells : {false, true}) {
          setup.zero_stage = stage;
          setup.shard_groups = tells ? 2 : 1;
          setup.fp32_reduction = setup.late_reduction = tells;
          EXPECT_EQ(setup.shared_stage(), 0);
          const TrainingSetup resolved = resolve(setup, gpt);
          EXPECT_EQ(texts(resolved), none) << stage;
          EXPECT_EQ(texts(resolve(resolved, gpt)), none) << stage;
        }
    }
  EXPECT_EQ(resolve({.optimizer = OptimizerKind::muon, .zero_stage = 1}, gpt).zero_stage, 0);
  EXPECT_THROW(resolve({.zero_stage = 4}, gpt), InputError);
  EXPECT_THROW(
      resolve({.data_parallel = 2, .optimizer_device = StateDevice::cpu, .weight_device = StateDevice::cpu}, gpt),
      InputError);
  EXPECT_EQ(resolve({.context_parallel = 2, .zero_stage = 3}, gpt).zero_stage, 3);
}

// Megatron-core: max(40 million, 1 million x data-parallel size) gradients of 4 or 2 bytes; PyTorch's DDP 25 MiB;
// DeepSpeed 500 million gradients; FSDP a layer.
TEST(ParallelLayout, BucketsAreTheFrameworks) {
  const ModelSpec gpt = find_model("gpt2-small");
  const auto bytes = [&](const TrainingSetup& setup) { return resolve(setup, gpt).bucket_bytes; };
  EXPECT_EQ(bytes({.data_parallel = 8}), 26'214'400);
  EXPECT_EQ(bytes({.framework = Framework::nanotron, .data_parallel = 8}), 26'214'400);
  EXPECT_EQ(bytes({.framework = Framework::huggingface, .data_parallel = 8}), 26'214'400);
  EXPECT_EQ(bytes({.framework = Framework::megatron, .data_parallel = 8}), 160'000'000);
  EXPECT_EQ(bytes({.framework = Framework::megatron, .data_parallel = 64}), 256'000'000);
  EXPECT_EQ(bytes({.framework = Framework::megatron, .context_parallel = 2, .data_parallel = 40}), 160'000'000);
  EXPECT_EQ(bytes({.main_gradients = StateType::bf16, .framework = Framework::megatron, .data_parallel = 64}),
            128'000'000);
  EXPECT_EQ(bytes({.framework = Framework::megatron_2021, .data_parallel = 2}), 80'000'000);
  EXPECT_EQ(bytes({.data_parallel = 8, .zero_stage = 1}), 1'000'000'000);
  EXPECT_EQ(bytes({.framework = Framework::megatron, .data_parallel = 8, .zero_stage = 1}), 160'000'000);
  for (const std::int64_t stage : {2, 3})
    EXPECT_EQ(bytes({.data_parallel = 8, .zero_stage = stage}), whole_layers) << stage;
  EXPECT_EQ(bytes({.framework = Framework::megatron, .data_parallel = 8, .bucket_bytes = 12345}), 12345);
  EXPECT_THROW(bytes({.bucket_bytes = -1}), InputError);
}

}  // namespace
}  // namespace spillway::models
