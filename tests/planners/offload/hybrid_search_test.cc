#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "planners/offload/hybrid_search.h"
#include "planners/recompute/closure.h"
#include "scenario/scenario_run.h"
#include "studies/offload/rok.h"

namespace spillway::studies {
namespace {

LoadedScenario load_model(const std::string& model, const std::string& system, int micro_batch) {
  return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": ")" + model +
                                 R"(", "sequence": 512, "micro_batch": )" + std::to_string(micro_batch) +
                                 R"(}, "hardware": {"profile": ")" + system + R"("}})",
                             "test", ""));
}

// A budget between what full recomputation takes and what keeping all takes.
Bytes budget_between(const LoadedScenario& loaded, double share) {
  HybridSettings settings;
  settings.replays = 1;
  settings.drives = settings.host = false;
  const HybridOutcome outcome = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  Bytes least = outcome.baselines.front().result.memory.peak_reserved;
  const Bytes most = least;
  for (const HybridCase& one : outcome.baselines) least = std::min(least, one.result.memory.peak_reserved);
  return least + Bytes(static_cast<std::int64_t>(share * static_cast<double>((most - least).count())));
}

HybridOutcome mix(const LoadedScenario& loaded, Bytes budget, std::int64_t replays = 0) {
  HybridSettings settings;
  settings.budget = budget;
  settings.replays = replays;
  return plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
}

TEST(Mix, KeepsEverythingThatFits) {
  const LoadedScenario loaded = load_model("gpt2-small", "h100-80gb-1gpu", 4);
  const HybridOutcome outcome = mix(loaded, Bytes(0));
  EXPECT_EQ(outcome.best.name, "keep");
  EXPECT_EQ(outcome.replays, 0);
}

// Three GPUs, four models: at the same memory limit at least as fast as the best baseline that fits, and faster in
// most.
// Where what enters a layer is kept by nobody, each layer made again takes those before it: no full recomputation.
TEST(Mix, LayersThatCanNotBeMadeAgainAloneAreNoBaseline) {
  const auto has_full = [](const std::string& model) {
    const LoadedScenario loaded =
        load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "llama-3.2-1b",
      "sequence": 512, "micro_batch": 4, "framework": "huggingface")" +
                                model + R"(}, "hardware": {"profile": "h100-80gb-1gpu"}})",
                            "test", ""));
    const HybridOutcome outcome = mix(loaded, Bytes(0), 1);
    return std::any_of(outcome.baselines.begin(), outcome.baselines.end(),
                       [](const HybridCase& one) { return one.name == "full recomputation"; });
  };
  EXPECT_FALSE(has_full(R"(, "fused_kernels": false)"));
  EXPECT_TRUE(has_full(R"(, "fused_kernels": true)"));
}

TEST(Mix, IsNeverSlowerThanABaselineThatFits) {
  int faster = 0, cases = 0;
  for (const std::string system : {"h100-80gb-1gpu", "a100-80gb-1gpu", "workstation-4090"})
    for (const std::string model : {"gpt2-small", "gpt2-medium", "bert-large", "tinyllama-1.1b"}) {
      const LoadedScenario loaded = load_model(model, system, 4);
      const Bytes budget = budget_between(loaded, 0.4);
      const HybridOutcome outcome = mix(loaded, budget, 80);
      ASSERT_TRUE(outcome.best.fits()) << model << " on " << system;
      EXPECT_LE(outcome.best.result.memory.peak_reserved, budget);
      Picos best = Picos::max(), published = Picos::max();
      for (const HybridCase& one : outcome.baselines) {
        if (!one.fits()) continue;
        best = std::min(best, one.result.step_time);
        if (!one.name.starts_with("recomputation,")) published = std::min(published, one.result.step_time);
      }
      EXPECT_LE(outcome.best.result.step_time, best) << model << " on " << system;
      faster += outcome.best.result.step_time < published ? 1 : 0;
      ++cases;
    }
  EXPECT_EQ(cases, 12);
  EXPECT_GE(faster, 10);
}

// One layer, everything of at least 4 MiB with a choice: all 3^n fates replayed against the search.
TEST(Mix, IsWithinTwoPerCentOfTheExactOptimumOnASmallStep) {
  const LoadedScenario loaded = [&] {
    ModelSpec model = find_model("gpt2-small");
    model.layers = 1;
    const Scenario scenario = parse_scenario(
        R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "micro_batch": 8},
            "hardware": {"profile": "workstation-4090"}})",
        "test", "");
    return load(scenario, model);
  }();
  const std::vector<SavedTensor> saved = saved_tensors(loaded.trace);
  HybridSettings settings;
  settings.least_bytes = Bytes(13 << 20);
  settings.host = false;
  settings.budget = budget_between(loaded, 0.5);
  const HybridOutcome found = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  ASSERT_TRUE(found.best.fits());

  ReplayOptions options = loaded.options;
  options.memory.capacity = settings.budget;
  std::vector<std::size_t> choice;
  for (std::size_t i = 0; i < saved.size(); ++i)
    if (saved[i].bytes >= settings.least_bytes && saved[i].last_forward != saved[i].first_backward) choice.push_back(i);
  ASSERT_LE(choice.size(), 8U);
  RecomputeIndex index(loaded.trace, saved);
  std::size_t all = 1;
  for (std::size_t i = 0; i < choice.size(); ++i) all *= 3;
  Picos best = Picos::max();
  for (std::size_t code = 0; code < all; ++code) {
    OffloadOutcome outcome;
    outcome.plan.in_flight = settings.budget / 20;
    AwayUntil away(saved.size(), OpId::none);
    std::vector<std::size_t> again;
    std::size_t left = code;
    for (const std::size_t i : choice) {
      const std::size_t fate = left % 3;
      left /= 3;
      if (fate == 0) continue;
      away[i] = saved[i].first_backward;
      if (fate == 2)
        again.push_back(i);
      else
        outcome.plan.absences.push_back({saved[i].tensor, Tier::drive, saved[i].written_by, saved[i].last_forward,
                                         OpId::none, saved[i].first_backward, false});
    }
    if (!again.empty()) {
      OpId before = saved[again.front()].first_backward;
      for (const std::size_t i : again) before = std::min(before, saved[i].first_backward);
      for (const std::size_t i : again) away[i] = before;
      const auto group = index.group(again, away);
      if (!group) continue;
      add_to_plan(*group, index, outcome.plan);
    }
    replay_with_forwarding(loaded.trace, PlainReplayer(loaded.hardware, options), outcome);
    if (outcome.result.fits()) best = std::min(best, outcome.result.step_time);
  }
  EXPECT_LE(to_seconds(found.best.result.step_time), 1.02 * to_seconds(best));
}

// The same step where drives wear out: nothing may be written, so nothing is.
TEST(Mix, ObeysTheLifeOfTheDrives) {
  const LoadedScenario loaded = load_model("gpt2-small", "h100-80gb-1gpu", 16);
  HybridSettings settings;
  settings.host = settings.recompute = false;
  settings.replays = 60;
  settings.budget = loaded.options.memory.capacity;
  HybridOutcome outcome = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  settings.budget = outcome.baselines.front().result.memory.peak_reserved * 9 / 10;
  outcome = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  ASSERT_TRUE(outcome.best.fits());
  Bytes written{};  // of activations by the mix, or of state by a technique that is faster
  for (const DriveTraffic& drive : outcome.best.result.drives) written += drive.written;
  EXPECT_GT(written, Bytes(0));
  settings.runtime.demands.least_life_years = 1000;
  outcome = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  EXPECT_FALSE(outcome.best.fits());
}

TEST(Rok, ThreeFamiliesPerBatchAndAFrontier) {
  const auto with = [](std::span<const std::string> edits) {
    return parse_scenario(
        R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 1024},
            "offload": {"least_elements": 1000000}, "hardware": {"profile": "h100-80gb-1gpu"}})",
        "test", "", edits);
  };
  const std::vector<std::int64_t> batches = {2, 8};
  const std::vector<RokPoint> points = rok_curve(with, batches, false);
  ASSERT_EQ(points.size(), 6U);
  const auto at = [&](const std::string& family, std::int64_t batch) {
    return *std::find_if(points.begin(), points.end(),
                         [&](const RokPoint& p) { return p.candidate.name == family && p.micro_batch == batch; });
  };
  for (const std::int64_t batch : batches) {
    EXPECT_LT(at("recompute", batch).activations, at("keep", batch).activations);
    EXPECT_LT(at("recompute", batch).model_flops_per_second, at("keep", batch).model_flops_per_second);
    EXPECT_LE(at("offload", batch).activations, at("keep", batch).activations);
  }
  // In proportion to the batch, though the update's temporaries are the peak of the small one.
  EXPECT_NEAR(in_gib(at("keep", 8).activations), 4 * in_gib(at("keep", 2).activations),
              0.05 * in_gib(at("keep", 8).activations));
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const RokPoint& p) { return p.on_frontier; }));
  const std::string svg = rok_svg("title & more", points);
  EXPECT_THAT(svg, testing::HasSubstr("title &amp; more"));
  EXPECT_THAT(svg, testing::HasSubstr("offload"));
}

}  // namespace
}  // namespace spillway::studies
