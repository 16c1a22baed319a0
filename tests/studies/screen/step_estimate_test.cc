#include "studies/screen/step_estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "models/step/trace_generator.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

struct Case {
  const char* name;
  std::int64_t tensor, pipeline, chunks, data, accumulation, micro_batch, zero;
  bool sequence_parallel, overlap;
  Recompute recompute;
  std::string schedule = "1f1b";
};

class StepEstimateTest : public testing::TestWithParam<Case> {};

// The closed form against the replay of the whole step, which it is made to stand for.
TEST_P(StepEstimateTest, StandsForTheReplay) {
  const Case& c = GetParam();
  const ModelSpec model = find_model("llama-2-7b");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  TrainingSetup wanted;
  wanted.framework = Framework::megatron_2022;
  wanted.sequence = 2048;
  wanted.tensor_parallel = c.tensor;
  wanted.pipeline_parallel = c.pipeline;
  wanted.pipeline_chunks = c.chunks;
  wanted.data_parallel = c.data;
  wanted.gradient_accumulation = c.accumulation;
  wanted.micro_batch = c.micro_batch;
  wanted.zero_stage = c.zero;
  wanted.sequence_parallel = c.sequence_parallel;
  wanted.overlap_gradients = c.overlap;
  wanted.recompute = c.recompute;
  wanted.pipeline_schedule = c.schedule;
  const TrainingSetup setup = resolve(wanted, model);
  const StepMachine machine(model, hardware, cost);
  const StepEstimate estimate = estimate_step(machine, measure_shape(machine, shape_setup(setup)), setup);
  const Result result = replay(generate_trace(model, setup, cost, machine.cluster), hardware, machine.options);
  EXPECT_NEAR(to_seconds(estimate.step_time) / to_seconds(result.step_time), 1, 0.035);
  EXPECT_NEAR(
      static_cast<double>(estimate.peak_allocated.count()) / static_cast<double>(result.memory.peak_allocated.count()),
      1, c.zero == 3 ? 0.05 : 0.02);  // gathers of more layers lie in the probe
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, StepEstimateTest,
    testing::Values(Case{"one_gpu", 1, 1, 1, 1, 4, 1, 0, false, true, Recompute::none},
                    Case{"tensor", 8, 1, 1, 1, 4, 2, 0, true, true, Recompute::selective},
                    Case{"pipeline", 2, 8, 1, 1, 16, 1, 0, false, true, Recompute::none},
                    Case{"interleaved", 2, 4, 4, 1, 16, 1, 0, true, true, Recompute::full},
                    Case{"gpipe", 1, 4, 1, 1, 8, 1, 0, false, true, Recompute::full, "gpipe"},
                    Case{"replicas", 1, 1, 1, 16, 2, 1, 0, false, false, Recompute::full},
                    Case{"distributed_optimizer", 2, 2, 1, 16, 8, 2, 1, true, true, Recompute::none},
                    Case{"shared_embedding", 1, 4, 1, 8, 8, 1, 0, false, false, Recompute::none},
                    Case{"gathered_chunks_of_a_layer", 1, 8, 4, 16, 16, 1, 3, false, true, Recompute::none},
                    Case{"split_gradients", 1, 1, 1, 16, 4, 1, 2, false, true, Recompute::none}),
    [](const auto& one) { return std::string(one.param.name); });

class Gpt3Estimate : public testing::Test {
 protected:
  Gpt3Estimate() {
    wanted_.framework = Framework::megatron_2022;
    wanted_.precision = TrainingPrecision::fp16_mixed;
    wanted_.sequence = 2048;
  }
  // Estimated over replayed step time; the binding is the replay's.
  [[nodiscard]] double ratio() {
    const TrainingSetup setup = resolve(wanted_, model_);
    const StepShape plain = measure_shape(machine_, plain_setup(shape_setup(setup)));
    const StepEstimate estimate = estimate_step(machine_, measure_shape(machine_, shape_setup(setup), &plain), setup);
    const Result result = replay(generate_trace(model_, setup, cost_, machine_.cluster), hardware_, machine_.options);
    binding_ = result.binding;
    return to_seconds(estimate.step_time) / to_seconds(result.step_time);
  }

  const ModelSpec model_ = find_model("gpt3-175b");
  const HardwareProfile hardware_ = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost_{hardware_};
  const StepMachine machine_{model_, hardware_, cost_};
  TrainingSetup wanted_;
  Binding binding_{};
};

// Chunks have fewer layers than come to a steady pace, and the network binds: what ZeRO's collectives take longer than
// the layers is in a probe's passes already, and not added once more.
TEST_F(Gpt3Estimate, ShortChunksHaveTheirCollectivesOnce) {
  wanted_.tensor_parallel = 8;
  wanted_.pipeline_parallel = 8;
  wanted_.data_parallel = 8;
  wanted_.gradient_accumulation = 16;
  struct Chunks {
    std::int64_t zero, chunks, prefetch;
    double off;
  };
  for (const auto& [zero, chunks, prefetch, off] : {Chunks{2, 6, 1, 0.035}, Chunks{3, 4, 2, 0.1}}) {
    wanted_.zero_stage = zero;
    wanted_.pipeline_chunks = chunks;
    wanted_.prefetch = prefetch;
    EXPECT_NEAR(ratio(), 1, off) << zero;
    EXPECT_EQ(binding_, Binding::network) << "what this is about";
  }
}

// Megatron-LM divides all gradients at once before they are reduced: of so short a step a 50th.
TEST_F(Gpt3Estimate, PassesOverAllGradientsAreCounted) {
  wanted_.pipeline_parallel = 2;
  wanted_.micro_batch = 2;
  wanted_.overlap_gradients = false;
  for (const std::int64_t replicas : {1, 8}) {
    wanted_.data_parallel = replicas;
    EXPECT_NEAR(ratio(), 1, 0.005) << replicas;
  }
}

// Groups that each share out a copy: gathered within a machine, added up between machines. Stage 2 reduces a layer at a
// time, which the estimate knows less well.
TEST_F(Gpt3Estimate, GroupsAddTheirSharesUp) {
  wanted_.tensor_parallel = 2;
  wanted_.pipeline_parallel = 8;
  wanted_.data_parallel = 16;
  wanted_.shard_groups = 4;
  wanted_.gradient_accumulation = 16;
  for (const std::int64_t zero : {1, 2, 3}) {
    wanted_.zero_stage = zero;
    EXPECT_NEAR(ratio(), 1, zero == 2 ? 0.065 : 0.03) << zero;
  }
}

// The last micro-batch alone reduces: no pass stands for the others.
TEST(StepEstimate, LateReductionsHaveNoClosedForm) {
  const ModelSpec model = find_model("llama-2-7b");
  TrainingSetup wanted;
  wanted.data_parallel = 8;
  wanted.zero_stage = 2;
  wanted.gradient_accumulation = 2;
  EXPECT_TRUE(has_closed_form(resolve(wanted, model)));
  wanted.late_reduction = true;
  EXPECT_FALSE(has_closed_form(resolve(wanted, model)));
  wanted.gradient_accumulation = 1;
  EXPECT_TRUE(has_closed_form(resolve(wanted, model)));
}

// nanotron cuts stages by the work of layers and a head: a probe's few layers would all go before a large head.
TEST(StepEstimate, StagesOfUnequalLayersAreMeasuredByEqualOnes) {
  const ModelSpec model = find_model("llama-3.1-8b");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-h100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  for (const std::int64_t pipeline : {2, 4})
    for (const std::int64_t micro_batch : {1, 4}) {
      TrainingSetup wanted;
      wanted.framework = Framework::nanotron;
      wanted.sequence = 4096;
      wanted.pipeline_parallel = pipeline;
      wanted.micro_batch = micro_batch;
      wanted.gradient_accumulation = 8;
      const TrainingSetup setup = resolve(wanted, model);
      const StepEstimate estimate = estimate_step(machine, measure_shape(machine, shape_setup(setup)), setup);
      const Result result = replay(generate_trace(model, setup, cost, machine.cluster), hardware, machine.options);
      EXPECT_NEAR(to_seconds(estimate.step_time) / to_seconds(result.step_time), 1, 0.05)
          << "p " << pipeline << " b " << micro_batch;
    }
}

// On one stage the allocator is run at the step's own depth, so nothing is left to guess: a share of what a shallow
// probe has cached would be 8 % and more off.
TEST(StepEstimate, PeaksOfOneStageAreThoseOfItsDepth) {
  const ModelSpec model = find_model("gpt2-small");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("workstation-4090");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  for (const Framework framework : {Framework::eager, Framework::megatron, Framework::nanotron})
    for (const std::int64_t micro_batch : {1, 4, 16})
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        TrainingSetup wanted;
        wanted.framework = framework;
        wanted.sequence = 1024;
        wanted.micro_batch = micro_batch;
        wanted.gradient_accumulation = 4;
        wanted.recompute = recompute;
        const TrainingSetup setup = resolve(wanted, model);
        StepShape shape = measure_shape(machine, shape_setup(setup));
        shape.cached = measure_cached(machine, shape_setup(setup));
        const StepEstimate estimate = estimate_step(machine, shape, setup);
        const Result result = replay(generate_trace(model, setup, cost, machine.cluster), hardware, machine.options);
        EXPECT_NEAR(static_cast<double>(estimate.peak_reserved.count()) /
                        static_cast<double>(result.memory.peak_reserved.count()),
                    1, 0.02)
            << "framework " << static_cast<int>(framework) << " b " << micro_batch << " " << to_string(recompute);
      }
}

// What is cached of gathered layers is added as bytes: a share of what is allocated would be 21 % off.
TEST(StepEstimate, WhatIsCachedUnderStageThreeIsAdded) {
  const ModelSpec model = find_model("llama-2-7b");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  TrainingSetup wanted;
  wanted.framework = Framework::megatron_2022;
  wanted.sequence = 4096;
  wanted.data_parallel = 16;
  wanted.gradient_accumulation = 4;
  wanted.micro_batch = 2;
  wanted.zero_stage = 3;
  wanted.recompute = Recompute::full;
  const TrainingSetup setup = resolve(wanted, model);
  const StepMachine machine(model, hardware, cost);
  StepShape shape = measure_shape(machine, shape_setup(setup));
  EXPECT_EQ(shape.cached, Bytes(0));
  shape.cached = measure_cached(machine, shape_setup(setup));
  const StepEstimate estimate = estimate_step(machine, shape, setup);
  EXPECT_GT(shape.cached, Bytes(0));
  EXPECT_EQ(estimate.peak_reserved - estimate.peak_allocated, shape.cached);
  const Result result = replay(generate_trace(model, setup, cost, machine.cluster), hardware, machine.options);
  EXPECT_NEAR(
      static_cast<double>(estimate.peak_reserved.count()) / static_cast<double>(result.memory.peak_reserved.count()), 1,
      0.14);
}

// What ZeRO 2 and 3 add is time and memory on top of the plain step's passes and of a GPU's share.
TEST(StepEstimate, ShardedStepsKeepTheirLowerBounds) {
  const ModelSpec model = find_model("llama-2-7b");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  for (const std::int64_t tensor : {1, 4})
    for (const std::int64_t pipeline : {1, 4})
      for (const std::int64_t data : {2, 32})
        for (const std::int64_t zero : {2, 3})
          for (const Recompute recompute : {Recompute::none, Recompute::full}) {
            TrainingSetup wanted;
            wanted.framework = Framework::megatron_2022;
            wanted.sequence = 2048;
            wanted.tensor_parallel = tensor;
            wanted.pipeline_parallel = pipeline;
            wanted.data_parallel = data;
            wanted.gradient_accumulation = 8;
            wanted.zero_stage = zero;
            wanted.recompute = recompute;
            const TrainingSetup setup = resolve(wanted, model);
            const StepShape plain = measure_shape(machine, plain_setup(shape_setup(setup)));
            const StepEstimate least = least_sharded_step(machine, plain, setup);
            const StepEstimate step = estimate_step(machine, measure_shape(machine, shape_setup(setup), &plain), setup);
            SCOPED_TRACE(testing::Message() << "t " << tensor << " p " << pipeline << " d " << data << " zero " << zero
                                            << " recompute " << to_string(recompute));
            EXPECT_LE(least.step_time, step.step_time);
            EXPECT_LE(least.peak_allocated, step.peak_allocated);
            EXPECT_GT(to_seconds(least.step_time), 0.3 * to_seconds(step.step_time));
            EXPECT_GT(least.peak_allocated.count() * 10, step.peak_allocated.count());
          }
}

// One shape serves all depths, micro-batch counts and numbers of replicas.
// Each value of an unseen field gives the same estimate, and what is seen is seen: not all of them are unseen.
TEST(StepEstimate, UnseenFieldsMakeNoDifference) {
  const ModelSpec model = find_model("gpt2-small");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  std::map<std::string, std::int64_t> unseen, different;  // by field
  for (const std::int64_t zero : {0, 1, 2, 3})
    for (const std::int64_t data : {1, 16})
      for (const bool overlap : {false, true}) {
        TrainingSetup wanted;
        wanted.framework = Framework::megatron_2022;
        wanted.sequence = 512;
        wanted.pipeline_parallel = 2;
        wanted.data_parallel = data;
        wanted.gradient_accumulation = 4;
        wanted.zero_stage = zero;
        wanted.overlap_gradients = overlap;
        const TrainingSetup setup = resolve(wanted, model);
        const auto estimate = [&](const TrainingSetup& one) {
          return estimate_step(machine, measure_shape(machine, shape_setup(one)), one);
        };
        const StepEstimate before = estimate(setup);
        const std::vector<std::string_view> fields = unseen_fields(model, setup);
        for (const auto& [field, text] : {std::pair<std::string, std::string>{"bucket_bytes", "800000000"},
                                          {"overlap_gradients", overlap ? "false" : "true"},
                                          {"loss", "fused"},
                                          {"prefetch", "0"}}) {
          TrainingSetup other = wanted;
          set_field(other, field, text);
          const StepEstimate after = estimate(resolve(other, model));
          const bool is_same = after.step_time == before.step_time && after.busy == before.busy &&
                               after.peak_allocated == before.peak_allocated;
          const bool is_unseen = std::find(fields.begin(), fields.end(), field) != fields.end();
          EXPECT_TRUE(!is_unseen || is_same) << field << " zero " << zero << " d " << data << " overlap " << overlap;
          unseen[field] += is_unseen ? 1 : 0;
          different[field] += is_same ? 0 : 1;
        }
      }
  EXPECT_EQ(unseen, (std::map<std::string, std::int64_t>{
                        {"bucket_bytes", 13}, {"loss", 16}, {"overlap_gradients", 4}, {"prefetch", 14}}));
  for (const auto& [field, count] : different) EXPECT_EQ(count > 0, field != "loss") << field;
}

// Megatron-LM splits the vocabulary and has one loss; PyTorch's modules have three on a GPU of their own.
TEST(StepEstimate, FormsOfTheLossAreSeenWhereTheyAreKnown) {
  const ModelSpec model = find_model("gpt2-small");
  TrainingSetup setup;
  const auto is_unseen = [&] {
    const std::vector<std::string_view> fields = unseen_fields(model, setup);
    return std::find(fields.begin(), fields.end(), "loss") != fields.end();
  };
  for (const LossForm loss : {LossForm::fp32, LossForm::native, LossForm::fused, LossForm::chunked}) {
    setup.loss = loss;
    setup.tensor_parallel = 1;
    setup.framework = Framework::eager;
    EXPECT_FALSE(is_unseen());
    setup.framework = Framework::megatron;  // fp32 and native are one, fused is another
    EXPECT_FALSE(is_unseen());
    setup.framework = Framework::megatron_2022;
    EXPECT_EQ(is_unseen(), loss != LossForm::chunked);
    setup.framework = Framework::eager;
    setup.tensor_parallel = 2;
    EXPECT_EQ(is_unseen(), loss != LossForm::chunked);
  }
}

// Chunks of seven layers and more are measured alike under ZeRO stage 2.
TEST(StepShape, EqualProbesAreEqualShapes) {
  const ModelSpec model = find_model("gpt2-medium");  // 24 layers
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  const auto shape_of = [&](std::int64_t pipeline, std::int64_t chunks) {
    TrainingSetup wanted;
    wanted.framework = Framework::megatron_2022;
    wanted.sequence = 512;
    wanted.pipeline_parallel = pipeline;
    wanted.pipeline_chunks = chunks;
    wanted.data_parallel = 8;
    wanted.gradient_accumulation = 12;
    wanted.zero_stage = 2;
    return shape_setup(resolve(wanted, model));
  };
  const TrainingSetup deep = shape_of(2, 1), other = shape_of(3, 1), shallow = shape_of(2, 4);
  EXPECT_NE(shape_key(deep), shape_key(other));
  EXPECT_EQ(probe_key(machine, deep, true), probe_key(machine, other, true));
  EXPECT_NE(probe_key(machine, deep, true), probe_key(machine, shallow, true));
  const StepShape plain = measure_shape(machine, plain_setup(deep));
  const StepShape one = measure_shape(machine, deep, &plain), two = measure_shape(machine, other, &plain);
  EXPECT_EQ(one.layer.forward, two.layer.forward);
  EXPECT_EQ(one.layer.backward, two.layer.backward);
  EXPECT_EQ(one.middle.kept, two.middle.kept);
  EXPECT_EQ(one.last.transient, two.last.transient);
  EXPECT_EQ(measure_cached(machine, deep, true), measure_cached(machine, other, true));
}

TEST(StepShape, KeysLeaveOutWhatAShapeDoesNotDependOn) {
  const ModelSpec model = find_model("llama-2-7b");
  TrainingSetup one;
  one.pipeline_parallel = 4;
  one.gradient_accumulation = 8;
  one.data_parallel = 2;
  TrainingSetup other = one;
  other.pipeline_parallel = 8;
  other.pipeline_chunks = 2;
  other.gradient_accumulation = 64;
  other.data_parallel = 16;
  other.zero_stage = 1;
  const auto key = [&](const TrainingSetup& setup) { return shape_key(shape_setup(resolve(setup, model))); };
  EXPECT_EQ(key(one), key(other));
  other.micro_batch = 2;
  EXPECT_NE(key(one), key(other));
  other = one;
  other.pipeline_parallel = 1;
  EXPECT_NE(key(one), key(other));
}

TEST(StepShape, NeedsAlikeLayers) {
  EXPECT_TRUE(has_alike_layers(find_model("llama-3-8b")));
  EXPECT_FALSE(has_alike_layers(find_model("t5-large")));
}

}  // namespace
}  // namespace spillway::studies
