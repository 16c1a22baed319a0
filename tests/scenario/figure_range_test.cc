// Ranges of predicted figures.
#include "scenario/figure_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hwprofiles/profile_library.h"
#include "scenario/evaluator.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

Result step(std::initializer_list<std::pair<Binding, std::int64_t>> parts) {
  Result result;
  for (const auto& [binding, microseconds] : parts) {
    result.breakdown[static_cast<std::size_t>(binding)] = Picos(microseconds * 1'000'000);
    result.replayed += Picos(microseconds * 1'000'000);
  }
  return result;
}

FigureRange range_of(const Result& result, const char* system = "h100-80gb-1gpu") {
  return step_time_range({}, result, ProfileLibrary::shared().load_system(system));
}

TEST(FigureRange, IsWiderWhereNobodyMeasuredTheKernels) {
  const Result compute = step({{Binding::compute, 5}}), network = step({{Binding::network, 5}});
  const FigureRange measured = range_of(compute), kin = range_of(compute, "workstation-4090");
  EXPECT_NEAR(1 - kin.low, std::hypot(1 - measured.low, 0.12), 1e-12);
  EXPECT_NEAR(kin.high - 1, std::hypot(measured.high - 1, 0.12), 1e-12);
  EXPECT_EQ(range_of(network, "workstation-4090").high, range_of(network).high);
}

TEST(FigureRange, HoldsThePrediction) {
  for (const Binding binding : {Binding::compute, Binding::hbm, Binding::network, Binding::host, Binding::idle}) {
    const FigureRange range = range_of(step({{binding, 7}}));
    ASSERT_TRUE(range.known);
    EXPECT_LE(range.low, 0.97);
    EXPECT_GE(range.high, 1.03);
  }
}

TEST(FigureRange, IsASumOverWhatBinds) {
  const FigureRange compute = range_of(step({{Binding::compute, 5}}));
  const FigureRange network = range_of(step({{Binding::network, 5}}));
  const FigureRange both = range_of(step({{Binding::compute, 6}, {Binding::network, 2}}));
  EXPECT_NEAR(both.low, 0.75 * compute.low + 0.25 * network.low, 1e-12);
  EXPECT_NEAR(both.high, 0.75 * compute.high + 0.25 * network.high, 1e-12);
  EXPECT_GT(network.high, compute.high);
}

// Megatron-core's experts, on hosts whose slowdown is assumed, measured, or not there.
TEST(FigureRange, TheHostOfExpertsIsKnownLess) {
  const Result waiting = step({{Binding::host, 5}}), working = step({{Binding::compute, 5}});
  HardwareProfile cloud = ProfileLibrary::shared().load_system("cloud-8xh100");
  const models::TrainingSetup dense{.framework = models::Framework::megatron, .data_parallel = 8, .zero_stage = 1};
  models::TrainingSetup experts = dense;
  experts.expert_parallel = 8;
  const auto high = [&](const models::TrainingSetup& setup, const Result& result) {
    return step_time_range(setup, result, cloud).high;
  };
  const double assumed = high(experts, waiting);
  EXPECT_EQ(high(dense, waiting), range_of(waiting).high);
  EXPECT_GT(high(experts, working), range_of(working).high);
  cloud.host.framework_slowdown->origin.provenance = OriginKind::measured;
  const double measured = high(experts, waiting);
  EXPECT_GT(assumed, measured * 1.2);
  EXPECT_GT(measured, high(dense, waiting));
  cloud.host.framework_slowdown.reset();
  EXPECT_EQ(high(experts, waiting), measured);
}

// The one published step of experts gathered one by one took 6.1 times as long.
TEST(FigureRange, TheHostOfDeepspeedsFetchesIsHardlyKnown) {
  const HardwareProfile machine = ProfileLibrary::shared().load_system("dgx-a100");
  const Result waiting = step({{Binding::host, 5}});
  models::TrainingSetup setup{.framework = models::Framework::deepspeed, .data_parallel = 8, .zero_stage = 3};
  EXPECT_GT(step_time_range(setup, waiting, machine).high, 6.1);
  setup.zero_stage = 2;
  EXPECT_LT(step_time_range(setup, waiting, machine).high, 2);
}

// What a tensor group's collectives take over machines is known least; what is hardly predicted still widens a range.
TEST(FigureRange, GoesByWhatTheNetworkHasToDo) {
  const HardwareProfile machine = ProfileLibrary::shared().load_system("dgx-h100");
  const Result waiting = step({{Binding::compute, 6}, {Binding::network, 4}}), working = step({{Binding::compute, 5}});
  const auto high = [&](const models::TrainingSetup& setup, const Result& result) {
    return step_time_range(setup, result, machine).high;
  };
  const models::TrainingSetup inside{.tensor_parallel = 8}, across{.tensor_parallel = 8, .data_parallel = 2},
      split{.tensor_parallel = 16};
  EXPECT_EQ(range_kind_words(range_kind(inside, machine)), "inside");
  EXPECT_EQ(range_kind_words(range_kind(across, machine)), "across");
  EXPECT_EQ(range_kind_words(range_kind(split, machine)), "split");
  EXPECT_GT(high(split, waiting), high(across, waiting));
  EXPECT_GT(high(across, working), high(inside, working) + 0.05);
  EXPECT_EQ(step_time_range(across, working, machine).low, step_time_range(inside, working, machine).low);
  models::TrainingSetup gathers{.framework = models::Framework::megatron_2021, .data_parallel = 16, .zero_stage = 3};
  EXPECT_EQ(range_kind_words(range_kind(gathers, machine)), "gathers");
  EXPECT_GT(high(gathers, waiting), high(split, waiting));
}

TEST(FigureRange, IsUnknownWhereNothingLikeItWasMeasured) {
  EXPECT_TRUE(range_of(step({{Binding::compute, 99}, {Binding::storage, 1}})).known);
  const FigureRange waiting = range_of(step({{Binding::compute, 9}, {Binding::pcie, 1}}));
  EXPECT_FALSE(waiting.known);
  EXPECT_EQ(waiting.basis.substr(0, 6), "10.0 %");
  EXPECT_FALSE(range_of({}).known);
}

Result run_on(const std::vector<std::string>& settings) {
  return run(load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},
      "hardware": {"profile": "h100-80gb-1gpu"}})",
                                 "test", "", settings)));
}

TEST(FigureRange, OfPeaksGoByFramework) {
  const Result engine = run_on({"model.framework=megatron"});
  ASSERT_TRUE(engine.peak_range.known);
  EXPECT_LT(engine.peak_range.high, 1.05);
  EXPECT_TRUE(engine.step_time_range.known);
  const Result eager = run_on({"model.framework=eager"});
  EXPECT_TRUE(eager.peak_range.known);
  const FigureRange full = run_on({"model.framework=huggingface"}).peak_range;
  const Result adapted = run_on({"model.framework=huggingface", "model.trainable=lora"});
  ASSERT_TRUE(full.known && adapted.peak_range.known);
  EXPECT_GT(adapted.peak_range.high, full.high + 0.1);
  EXPECT_TRUE(eager.step_time_range.known);
}

TEST(FigureRange, OfPeaksAreThoseOfTheLayersAndTheAllocatorThatWerePublished) {
  EXPECT_FALSE(run_on({"model.framework=megatron", "model.flash_attention=false"}).peak_range.known);
  EXPECT_FALSE(run_on({"model.framework=megatron", "memory.allocator=stalloc"}).peak_range.known);
  EXPECT_FALSE(run_on({"model.framework=nanotron"}).peak_range.known);
}

TEST(FigureRange, OfPeaksIsKnownForDeepspeedsAdamOnTheCpu) {
  const std::vector<std::string> settings = {"model.framework=deepspeed", "model.precision=bf16_mixed",
                                             "model.zero_stage=2", "model.optimizer_device=cpu"};
  const Result away = run_on(settings);
  ASSERT_TRUE(away.peak_range.known);
  EXPECT_FALSE(away.step_time_range.known);
  EXPECT_NEAR(static_cast<double>(peak_within({.framework = models::Framework::deepspeed}, Bytes(1 << 30)).count()) *
                  away.peak_range.high,
              1 << 30, 2);
}

TEST(FigureRange, OfPeaksIsByKind) {
  const auto kind = [](models::TrainingSetup setup) { return peak_kind_word(peak_kind(setup)); };
  using models::Framework;
  EXPECT_EQ(kind({.framework = Framework::megatron}), "core");
  EXPECT_EQ(kind({.framework = Framework::megatron, .expert_parallel = 8}), "experts");
  EXPECT_EQ(kind({.framework = Framework::megatron, .zero_stage = 3}), "other");
  EXPECT_EQ(kind({.framework = Framework::eager}), "modules");
  EXPECT_EQ(kind({.framework = Framework::eager, .tensor_parallel = 2}), "modules");
  EXPECT_EQ(kind({.framework = Framework::eager, .tensor_parallel = 2, .whole_vocabulary = true}), "whole vocabulary");
  EXPECT_EQ(kind({.framework = Framework::deepspeed}), "deepspeed");
  models::TrainingSetup adapted{.framework = Framework::deepspeed};
  adapted.trainable = models::Trainable::lora;
  EXPECT_EQ(kind(adapted), "adapters");
  EXPECT_LT(peak_within(adapted, Bytes(1 << 30)), Bytes(1 << 29)) << "half a GiB beside";
}

TEST(FigureRange, IsUnknownWithStateOffTheGpu) {
  const Result away = run_on({"model.framework=megatron_2022", "model.optimizer_device=cpu"});
  EXPECT_FALSE(away.peak_range.known);
  EXPECT_FALSE(away.step_time_range.known);
}

}  // namespace
}  // namespace spillway::scenario
