// A folded step comes to what the whole one comes to, in every figure a face shows.
#include "scenario/brief_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/input_error.h"
#include "scenario/evaluator.h"
#include "scenario/result_bytes.h"
#include "tests/test_size.h"

namespace spillway::scenario {
namespace {

void expect_same_memory(const MemoryResult& a, const MemoryResult& b) {
  EXPECT_EQ(a.known, b.known);
  EXPECT_EQ(a.peak_allocated, b.peak_allocated);
  EXPECT_EQ(a.peak_reserved, b.peak_reserved);
  EXPECT_EQ(a.peak_time, b.peak_time);
  EXPECT_EQ(a.out_of_memory, b.out_of_memory);
  EXPECT_EQ(a.explanation, b.explanation);
  EXPECT_EQ(a.segments_allocated, b.segments_allocated);
  EXPECT_EQ(a.driver_time, b.driver_time);
  EXPECT_EQ(a.first_driver_time, b.first_driver_time);
  EXPECT_EQ(a.short_of, b.short_of);
  EXPECT_EQ(a.is_tight, b.is_tight);
  EXPECT_EQ(a.device, b.device);
  const auto expect_same_owners = [](const std::vector<PeakOwner>& one, const std::vector<PeakOwner>& other) {
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].name, other[i].name);
      EXPECT_EQ(one[i].bytes, other[i].bytes);
    }
  };
  expect_same_owners(a.owners, b.owners);
  expect_same_owners(a.owners_by_layer, b.owners_by_layer);
  expect_same_owners(a.owners_by_phase, b.owners_by_phase);
}

void expect_same(const Result& a, const Result& b) {
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.step_time, b.step_time);
  EXPECT_EQ(a.replayed, b.replayed);
  EXPECT_EQ(a.breakdown, b.breakdown);
  EXPECT_EQ(a.binding, b.binding);
  EXPECT_EQ(a.bubble, b.bubble);
  EXPECT_EQ(a.tokens_per_second, b.tokens_per_second);
  EXPECT_EQ(a.mfu, b.mfu);
  EXPECT_EQ(a.warnings, b.warnings);
  EXPECT_EQ(a.verdict(), b.verdict());
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].begin, b.steps[i].begin);
    EXPECT_EQ(a.steps[i].end, b.steps[i].end);
    EXPECT_EQ(a.steps[i].device_busy, b.steps[i].device_busy);
  }
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (std::size_t i = 0; i < a.ranks.size(); ++i) {
    EXPECT_EQ(a.ranks[i].bubble, b.ranks[i].bubble) << i;
    EXPECT_EQ(a.ranks[i].compute_busy, b.ranks[i].compute_busy) << i;
    EXPECT_EQ(a.ranks[i].peak_allocated, b.ranks[i].peak_allocated) << i;
    EXPECT_EQ(a.ranks[i].peak_reserved, b.ranks[i].peak_reserved) << i;
    EXPECT_EQ(a.ranks[i].verdict, b.ranks[i].verdict) << i;
  }
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    EXPECT_EQ(a.links[i].bytes, b.links[i].bytes);
    EXPECT_EQ(a.links[i].busy_fraction, b.links[i].busy_fraction);
  }
  EXPECT_EQ(a.host_memory.known, b.host_memory.known);
  EXPECT_EQ(a.host_memory.peak, b.host_memory.peak);
  ASSERT_EQ(a.power.has_value(), b.power.has_value());
  if (a.power) {
    EXPECT_EQ(a.power->joules, b.power->joules);
    EXPECT_EQ(a.power->watts, b.power->watts);
  }
  EXPECT_EQ(a.step_time_range.low, b.step_time_range.low);
  EXPECT_EQ(a.step_time_range.high, b.step_time_range.high);
  expect_same_memory(a.memory, b.memory);
  ASSERT_EQ(a.offload.has_value(), b.offload.has_value());
  if (a.offload) {
    EXPECT_EQ(a.offload->stored, b.offload->stored);
    EXPECT_EQ(a.offload->loaded, b.offload->loaded);
    EXPECT_EQ(a.offload->candidates, b.offload->candidates);
    EXPECT_EQ(a.offload->kept, b.offload->kept);
  }
  // And in all else but what goes op by op.
  const auto all_of = [](Result result) {
    result.memory.timeline.clear();
    return bytes_of(result);
  };
  EXPECT_TRUE(all_of(a) == all_of(b));
}

// Whether it was folded.
bool folds_exactly(const Scenario& scenario, std::size_t* whole_ops = nullptr, std::size_t* shown_ops = nullptr) {
  const BriefRun brief = run_briefly(scenario);
  const LoadedScenario whole = load(scenario);
  expect_same(brief.run.result, run(whole));
  if (whole_ops != nullptr) *whole_ops = whole.trace.ops.size();
  if (shown_ops != nullptr) *shown_ops = brief.loaded.trace.ops.size();
  return brief.loaded.options.memory.fold != nullptr;
}

Scenario scenario_of(const std::string& model, const std::string& settings) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": ")" + model + "\", " +
                            settings + R"(}, "hardware": {"profile": "dgx-h100"}})",
                        "test", ".");
}

TEST(BriefRun, AManyStagedStepIsToldByAPartOfItsMicroBatches) {
  std::size_t whole = 0, shown = 0;
  EXPECT_TRUE(
      folds_exactly(scenario_of("llama-3.1-8b",
                                R"("gradient_accumulation": 200, "tensor_parallel": 2, "sequence_parallel": true,
                     "pipeline_parallel": 4, "framework": "megatron_2022", "recompute": "selective")"),
                    &whole, &shown));
  EXPECT_LT(4 * shown, whole);
}

// Stages of three layers between two of two: without sequence parallelism they take turns of six micro-batches. Numbers
// of micro-batches that the first try leaves whole turns of (104), and others.
TEST(BriefRun, TurnsOfManyMicroBatches) {
  for (const int micro_batches : {96, 101, 104, 131}) {
    SCOPED_TRACE(micro_batches);
    std::size_t whole = 0, shown = 0;
    EXPECT_TRUE(folds_exactly(scenario_of("llama-3.1-405b",
                                          R"("layers": 22, "tensor_parallel": 8, "pipeline_parallel": 8,
                     "framework": "megatron_2022", "recompute": "full", "gradient_accumulation": )" +
                                              std::to_string(micro_batches)),
                              &whole, &shown));
    EXPECT_LT(shown, whole / 2);
  }
}

// Interleaved goes through micro-batches in groups of its stages, of which the part of 22 that is tried first has a
// broken one.
TEST(BriefRun, GroupsOfMicroBatchesStayWhole) {
  EXPECT_TRUE(folds_exactly(scenario_of("llama-3.1-8b", R"("layers": 6, "gradient_accumulation": 120,
                     "pipeline_parallel": 3, "pipeline_schedule": "interleaved", "framework": "megatron_2022")")));
}

TEST(BriefRun, OneStageAndManyReplicas) {
  EXPECT_TRUE(folds_exactly(scenario_of("gpt2-small", R"("gradient_accumulation": 96, "data_parallel": 4,
                                                        "framework": "megatron")")));
}

// Bound by the GPU, by the host, and with memory that goes on changing; on one GPU micro-batches are recorded whole.
TEST(BriefRun, OneGpuOfPyTorchModules) {
  for (const char* settings : {R"("gradient_accumulation": 100, "micro_batch": 8)",
                               R"("gradient_accumulation": 101, "micro_batch": 1, "sequence": 128)",
                               R"("gradient_accumulation": 64, "framework": "huggingface", "recompute": "full")",
                               R"("gradient_accumulation": 77, "framework": "huggingface", "lora_rank": 8)",
                               R"("gradient_accumulation": 96, "loss": "chunked", "precision": "fp32")"}) {
    SCOPED_TRACE(settings);
    std::size_t whole = 0, shown = 0;
    EXPECT_TRUE(folds_exactly(scenario_of("gpt2-small", settings), &whole, &shown));
    EXPECT_LT(2 * shown, whole);
  }
}

// Drives' caches fill and drain by the clock, a delayed update waits for nothing, one GPU is recorded with one lane,
// and a launch that waits for its kernel leaves no lag to go on.
TEST(BriefRun, WhatWorksBesideTheMicroBatchesIsReplayedWhole) {
  for (const char* settings :
       {R"("gradient_accumulation": 60, "data_parallel": 2, "optimizer_device": "drives")",
        R"("gradient_accumulation": 60, "optimizer_device": "cpu")",
        R"("gradient_accumulation": 60, "data_parallel": 2, "optimizer_device": "cpu", "delayed_update": true)",
        R"("gradient_accumulation": 60, "launch_blocking": true)",
        R"("gradient_accumulation": 60, "evaluate_every": 10)"}) {
    SCOPED_TRACE(settings);
    EXPECT_FALSE(folds_exactly(scenario_of("gpt2-small", settings)));
  }
}

// Its copies come after the last micro-batch, those of weights with every one.
TEST(BriefRun, StatesOnTheHost) {
  for (const char* settings :
       {R"("gradient_accumulation": 100, "micro_batch": 8, "data_parallel": 2, "optimizer_device": "cpu")",
        R"("gradient_accumulation": 128, "tensor_parallel": 2, "optimizer_device": "cpu")",
        R"("gradient_accumulation": 200, "optimizer_device": "cpu", "weight_device": "cpu", "data_parallel": 4,
           "zero_stage": 3, "recompute": "full")"}) {
    SCOPED_TRACE(settings);
    std::size_t whole = 0, shown = 0;
    EXPECT_TRUE(folds_exactly(scenario_of("gpt2-small", settings), &whole, &shown));
    EXPECT_LT(shown, whole);
  }
}

// To host memory, each micro-batch planned by itself: transfers, repeated operators and cut lives come again.
TEST(BriefRun, PlansThatRepeat) {
  for (const char* technique : {"ssdtrain", "checkpoints", "stream"})
    for (const char* stages : {"", R"(, "pipeline_parallel": 2, "recompute": "full")"}) {
      SCOPED_TRACE(std::string(technique) + stages);
      Scenario scenario = scenario_of("gpt2-small", std::string(R"("layers": 4, "gradient_accumulation": 160,
          "micro_batch": 8, "sequence": 1024, "data_parallel": 2, "framework": "megatron")") +
                                                        stages);
      scenario.offload.technique = technique;
      scenario.offload.tier = Tier::host;
      std::size_t whole = 0, shown = 0;
      EXPECT_TRUE(folds_exactly(scenario, &whole, &shown));
      EXPECT_LT(shown, whole);
      scenario.offload.tier = Tier::drive;
      EXPECT_FALSE(may_fold(scenario)) << "caches fill by the clock";
    }
}

// Weights stay for the first 33 micro-batches that a part shows, as they are soon used again, and then leave. Periods
// of the first kind are the most, but more micro-batches are of the second.
TEST(BriefRun, PlansThatChangeOnce) {
  Scenario scenario = scenario_of("qwen3-30b-a3b", R"("layers": 4, "gradient_accumulation": 210, "sequence": 512,
      "framework": "eager", "data_parallel": 4, "tensor_parallel": 2, "zero_stage": 3, "optimizer_device": "cpu",
      "weight_device": "gpu", "pipeline_parallel": 2, "pipeline_schedule": "eager-1f1b")");
  scenario.offload.technique = "stream";
  scenario.offload.tier = Tier::host;
  scenario.allocator = "torch-expandable";
  scenario.capacity_bytes = std::int64_t{8} << 30;
  static_cast<void>(folds_exactly(scenario));
}

// In the first iteration, in a micro-batch that is not shown: its blocks are those of the ones that are.
TEST(BriefRun, OwnersWhereTheFirstIterationRunsOut) {
  Scenario scenario = scenario_of("llama-3-8b", R"("layers": 8, "gradient_accumulation": 312, "sequence": 512,
      "micro_batch": 3, "framework": "nanotron", "recompute": "selective", "pipeline_parallel": 4,
      "pipeline_schedule": "interleaved", "pipeline_chunks": 2)");
  scenario.offload.technique = "stream";
  scenario.offload.tier = Tier::host;
  scenario.allocator = "torch-expandable";
  scenario.capacity_bytes = std::int64_t{8} << 30;
  EXPECT_TRUE(folds_exactly(scenario));
}

// Searches over the tensors of all micro-batches, orders of all operators.
TEST(BriefRun, PlansOfTheWholeStepAreMadeOnIt) {
  Scenario scenario = scenario_of("gpt2-small", R"("gradient_accumulation": 160, "data_parallel": 2)");
  EXPECT_TRUE(may_fold(scenario));
  scenario.offload.tier = Tier::host;
  for (const char* technique : {"mix", "lifetimes"}) {
    scenario.offload.technique = technique;
    EXPECT_FALSE(may_fold(scenario)) << technique;
  }
  scenario.offload = {};
  scenario.order = "roam";
  EXPECT_FALSE(may_fold(scenario));
}

TEST(BriefRun, WhatItSaysIsWholeWhereSomebodyAsks) {
  Scenario scenario = scenario_of("gpt2-small", R"("gradient_accumulation": 96, "data_parallel": 4)");
  scenario.fold = false;
  EXPECT_EQ(run_briefly(scenario).loaded.options.memory.fold, nullptr);
}

TEST(BriefRun, FewMicroBatchesAreReplayedOneByOne) {
  EXPECT_FALSE(folds_exactly(scenario_of("gpt2-small", R"("gradient_accumulation": 8, "data_parallel": 4)")));
}

TEST(BriefRun, ABriefStepHasFewOfManyMicroBatches) {
  const std::string many = R"("global_batch": 800, "data_parallel": 2, "optimizer_device": "cpu")";
  const std::optional<Scenario> brief = brief_step(scenario_of("gpt2-small", many));
  ASSERT_TRUE(brief.has_value());
  const LoadedScenario loaded = load(*brief);
  EXPECT_EQ(loaded.setup.gradient_accumulation, 2);
  EXPECT_EQ(loaded.setup.data_parallel, 2);
  EXPECT_FALSE(brief_step(scenario_of("gpt2-small", R"("gradient_accumulation": 8)")));
  EXPECT_FALSE(brief_step(scenario_of("gpt2-small", many + R"(, "evaluate_every": 10)")));
}

TEST(BriefRun, DrawnLoadsOfExpertsAreReplayedOneByOne) {
  EXPECT_FALSE(folds_exactly(scenario_of("mixtral-8x7b", R"("layers": 2, "gradient_accumulation": 60,
      "data_parallel": 2, "framework": "megatron", "sequence": 256, "expert_load": "lognormal")")));
}

TEST(BriefRun, BundledScenarios) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/cli/scenarios")) {
    SCOPED_TRACE(entry.path().string());
    const Scenario scenario = load_scenario(entry.path().string());
    if (scenario.model.empty() || scenario.offload.moves()) continue;
    if (!test::is_full_size() && scenario.training.gradient_accumulation < 32) continue;  // replayed whole both times
    folds_exactly(scenario);
  }
}

// A step of random layers, schedule and set-up on some GPUs.
class RandomScenarios {
 public:
  explicit RandomScenarios(std::uint64_t seed) : random_(seed) {}

  std::string one_of(const std::vector<std::string>& words) { return words[random_() % words.size()]; }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  // micro_batches: at most, by one stage.
  Scenario next(const std::vector<std::string>& schedules, std::uint64_t micro_batches) {
    for (;;) {
      const std::string settings = this->settings(schedules, micro_batches);
      const std::string model = one_of({"gpt2-small", "llama-3-8b", "qwen3-30b-a3b"});
      described_ = model + " " + settings;
      Scenario scenario = scenario_of(model, settings);
      scenario.allocator = one_of({"torch", "torch", "torch-expandable", "ideal"});
      if (below(4) == 0) scenario.capacity_bytes = std::int64_t{1} << (30 + below(6));
      try {
        static_cast<void>(load(scenario));
        return scenario;
      } catch (const InputError&) {  // no such set-up
      }
    }
  }
  [[nodiscard]] const std::string& described() const { return described_; }

 private:
  std::string settings(const std::vector<std::string>& schedules, std::uint64_t micro_batches) {
    const std::int64_t stages = std::int64_t{1} << below(4);
    const std::string schedule = stages == 1 ? "1f1b" : one_of(schedules);
    std::string settings = "\"layers\": " + std::to_string(stages * (schedule == "interleaved" ? 2 : 1) *
                                                           (1 + static_cast<std::int64_t>(below(2))));
    settings += ", \"gradient_accumulation\": " +
                std::to_string(
                    stages * static_cast<std::int64_t>(4 + below(micro_batches / static_cast<std::uint64_t>(stages))));
    settings += ", \"sequence\": " + one_of({"128", "256", "512"}) + ", \"micro_batch\": " + one_of({"1", "2", "3"});
    settings += ", \"framework\": \"" +
                one_of({"megatron", "megatron", "megatron_2022", "megatron_2021", "eager", "nanotron"}) + "\"";
    settings += ", \"data_parallel\": " + one_of({"1", "2", "4"}) + ", \"tensor_parallel\": " + one_of({"1", "2"});
    settings += ", \"recompute\": \"" + one_of({"none", "full", "selective"}) +
                "\", \"zero_stage\": " + one_of({"0", "1", "2", "3"});
    const std::string device = one_of({"gpu", "gpu", "cpu"});
    settings += ", \"optimizer_device\": \"" + device + "\"";
    if (device == "cpu") settings += ", \"weight_device\": \"" + one_of({"gpu", "cpu"}) + "\"";
    if (stages > 1)
      settings += ", \"pipeline_parallel\": " + std::to_string(stages) + ", \"pipeline_schedule\": \"" + schedule +
                  "\"" + (schedule == "interleaved" ? ", \"pipeline_chunks\": 2" : "");
    return settings;
  }

  std::mt19937_64 random_;
  std::string described_;
};

// Of random set-ups, 50 here and 1,000 at full size.
TEST(BriefRun, RandomScenarios) {
  RandomScenarios random(20261);
  const int cases = test::cases(25, 1000);
  int folded = 0;
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    const Scenario scenario =
        random.next({"1f1b", "1f1b", "eager-1f1b", "interleaved", "zb-h1", "zb-h2", "gpipe", "zb-1p"}, 240);
    SCOPED_TRACE(random.described());
    folded += folds_exactly(scenario) ? 1 : 0;
  }
  EXPECT_GT(5 * folded, cases);
  RecordProperty("folded", folded);
}

// The same under techniques that plan each micro-batch by itself. Each case has a seed of its own.
TEST(BriefRun, RandomPlans) {
  const auto [first, end] = test::case_range(4, 1000);
  int folded = 0, moving = 0;
  for (int i = first; i < end && !::testing::Test::HasFailure(); ++i) {
    RandomScenarios random(20262 + static_cast<std::uint64_t>(i));
    Scenario scenario = random.next({"1f1b", "1f1b", "eager-1f1b", "interleaved"}, 500);
    scenario.offload.technique = random.one_of({"ssdtrain", "ssdtrain", "checkpoints", "stream"});
    scenario.offload.tier = Tier::host;
    if (random.below(4) == 0) scenario.offload.in_flight = Bytes(std::int64_t{1} << (24 + random.below(6)));
    scenario.offload.ssdtrain.adaptive = random.below(4) != 0;
    scenario.offload.ssdtrain.keep_last = random.below(4) != 0;
    scenario.offload.ssdtrain.least_elements = std::int64_t{1} << (12 + random.below(6));
    SCOPED_TRACE("SPILLWAY_TEST_CASES=" + std::to_string(i) + ": " + scenario.offload.technique + ", " +
                 random.described() + ", " + scenario.allocator + ", " +
                 std::to_string(scenario.capacity_bytes.value_or(0)));
    Result whole;
    try {
      whole = run(load(scenario));
    } catch (const InputError&) {
      continue;  // nothing to plan with
    }
    const BriefRun brief = run_briefly(scenario);
    expect_same(brief.run.result, whole);
    if (brief.loaded.options.memory.fold == nullptr) continue;
    ++folded;
    moving += whole.offload && whole.offload->stored + whole.offload->recomputed > Bytes(0) ? 1 : 0;
  }
  RecordProperty("folded", folded);
  if (std::pair(first, end) != std::pair(0, test::cases(4, 1000))) return;  // too few to count
  EXPECT_GT(5 * folded, end);
  EXPECT_GT(10 * moving, end);
}

}  // namespace
}  // namespace spillway::scenario
