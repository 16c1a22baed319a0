#include "studies/sweep/sweep_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "studies/sweep/sweep_looks.h"
#include "studies/sweep/sweep_run.h"
#include "studies/sweep/sweep_seeds.h"
#include "studies/sweep/sweep_store.h"

namespace spillway::studies {
namespace {

SweepFile energy_file() {
  return parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 1024, "global_batch": 256}, "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 4]},
           {"name": "b", "key": "model.micro_batch", "values": [1, 2, 4, 8]}],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "8 / p"}],
  "objectives": ["energy_per_token"]
})json",
                     "sweep.json", "");
}

// A DGX A100 draws 6.5 kW at most, 0.3 of it at rest, and its room 1.3 times that (prices.json).
TEST(SweepScreen, EnergyIsThatOfRestAndWork) {
  SweepFile file = energy_file();
  file.margin = file.memory_margin = 0.9;
  SweepScreen screen(file);
  SweepSpace space(file);
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  ASSERT_EQ(outcome.rows.size(), 12U);
  for (const SweepRow& row : outcome.rows) {
    const Figures& replayed = row.replayed;
    EXPECT_NEAR(replayed.rates.busy_watts, 6500 * 1.3, 1e-6);
    EXPECT_NEAR(replayed.rates.rest_watts, 6500 * 1.3 * 0.3, 1e-6);
    EXPECT_GT(replayed.busy_seconds, 0);
    EXPECT_LE(replayed.busy_seconds, replayed.step_seconds);
    const double joules = 6500 * 1.3 * (0.3 * replayed.step_seconds + 0.7 * replayed.busy_seconds);
    EXPECT_NEAR(replayed.value(Objective::energy_per_token), joules / (256 * 1024), 1e-9);
    const double screened =
        screen.estimate(space.settings(space.at(row.number))).metrics.value(Objective::energy_per_token);
    EXPECT_NEAR(screened / replayed.value(Objective::energy_per_token), 1, 0.15) << row.candidate.name;
  }
}

// Of a small space the allocator runs over the fullest stage's own allocations: what is reserved is the replay's, where
// a probe's cached bytes on top of what is held were up to 27 % off.
TEST(SweepScreen, PeaksOfSmallSpacesAreTheReplays) {
  const SweepFile file = parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 1024, "global_batch": 64, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "p", "key": "model.pipeline_parallel", "values": [1, 2, 4]},
           {"name": "v", "key": "model.pipeline_chunks", "values": [1, 2]},
           {"name": "b", "key": "model.micro_batch", "values": [1, 4]},
           {"name": "recompute", "key": "model.recompute", "values": ["none", "full"]},
           {"name": "zero", "key": "model.zero_stage", "values": [0, 1, 2, 3]}],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "8 / p"}],
  "where": ["v == 1 || (p > 1 && mod(64 / (d * b), p) == 0)"],
  "objectives": ["step_time", "peak_memory"]
})json",
                                     "sweep.json", "");
  SweepScreen screen(file);
  SweepSpace space(file);
  SweepWorker worker(file);
  std::vector<double> errors;
  for (std::int64_t number = 0; number < space.size(); ++number) {
    if (!space.allows(number)) continue;
    const SweepSettings settings = space.settings(space.at(number));
    const SweepEstimate estimate = screen.estimate(settings);
    const Row replay = worker.replay(edits_of(settings));
    ASSERT_EQ(replay.error, "");
    errors.push_back(std::abs(estimate.metrics.peak_bytes / figures_of(replay).peak_bytes - 1));
  }
  ASSERT_GT(errors.size(), 50U);
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 1e-9);
  EXPECT_LT(errors[errors.size() * 9 / 10], 0.01);
  EXPECT_LT(errors.back(), 0.05);
}

// Keys of "model" that are no field of the training set-up, the model's name and layers, are axes like any other.
TEST(SweepScreen, LayersAreAnAxis) {
  SweepFile file = parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 512}, "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "layers", "key": "model.layers", "values": [6, 12, 24]},
           {"name": "b", "key": "model.micro_batch", "values": [1, 4]}],
  "objectives": ["gpu_time_per_token", "peak_memory"]
})json",
                               "sweep.json", "");
  file.margin = file.memory_margin = 0.9;
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  ASSERT_EQ(outcome.rows.size(), 6U);
  std::map<std::string, double> seconds;
  for (const SweepRow& row : outcome.rows) {
    EXPECT_EQ(row.error, "");
    EXPECT_NEAR(row.screened.step_seconds / row.replayed.step_seconds, 1, 0.1) << row.candidate.name;
    if (row.options.at(1) == "4") seconds[row.options.at(0)] = row.replayed.step_seconds;
  }
  EXPECT_GT(seconds.at("12"), 1.3 * seconds.at("6"));
  EXPECT_GT(seconds.at("24"), 1.5 * seconds.at("12"));
}

TEST(SweepScreen, FindsTheLeastEnergyOfAllReplays) {
  SweepFile file = energy_file();
  SweepStore store, other;
  const auto front = [](const SweepOutcome& outcome) {
    std::set<std::int64_t> numbers;
    for (const SweepRow& row : outcome.rows)
      if (row.on_front) numbers.insert(row.number);
    return numbers;
  };
  const std::set<std::int64_t> found = front(run_sweep(file, {}, store));
  file.margin = file.memory_margin = 0.9;
  EXPECT_EQ(found, front(run_sweep(file, {}, other)));
}

// A program that reserves more than there is gives cached segments back before it runs out: only what it has allocated
// tells that it can't fit.
TEST(SweepScreen, WhatIsCachedRulesNothingOut) {
  SweepFile file = energy_file();
  file.objectives = {Objective::peak_memory};
  SweepEstimate estimate;
  estimate.metrics.step_seconds = 1;
  estimate.metrics.peak_bytes = 60e9;
  estimate.metrics.allocated_bytes = 30e9;
  estimate.capacity_bytes = 40e9;
  EXPECT_TRUE(estimate.may_do(file));
  EXPECT_FALSE(estimate.does(file));
  EXPECT_DOUBLE_EQ(estimate.best(file)[0], 30e9 * (1 - file.memory_margin));
  estimate.metrics.allocated_bytes = 50e9;  // more than margins explain
  EXPECT_FALSE(estimate.may_do(file));
  estimate.metrics.allocated_bytes = 20e9;
  estimate.metrics.peak_bytes = 30e9;  // nothing to give back
  EXPECT_TRUE(estimate.does(file));
  EXPECT_DOUBLE_EQ(estimate.best(file)[0], 30e9 * (1 - file.memory_margin));
}

void expect_equal(const SweepEstimate& one, const SweepEstimate& other, std::int64_t number) {
  EXPECT_EQ(one.invalid, other.invalid) << number;
  EXPECT_EQ(one.metrics.step_seconds, other.metrics.step_seconds) << number;
  EXPECT_EQ(one.metrics.busy_seconds, other.metrics.busy_seconds) << number;
  EXPECT_EQ(one.metrics.peak_bytes, other.metrics.peak_bytes) << number;
  EXPECT_EQ(one.metrics.gpus, other.metrics.gpus) << number;
  EXPECT_EQ(one.metrics.tokens_per_step, other.metrics.tokens_per_step) << number;
  EXPECT_EQ(one.metrics.allocated_bytes, other.metrics.allocated_bytes) << number;
  EXPECT_EQ(one.is_least, other.is_least) << number;
  EXPECT_EQ(one.is_bound, other.is_bound) << number;
}

// Points that share a look have the one that each would have alone: with values that are refused, with a derived value
// behind an axis, and with options that set more than one key.
TEST(SweepLooks, AreThoseOfEachPointAlone) {
  const auto file_of = [](const std::string& axes, const std::string& derived) {
    return parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 512, "global_batch": 32, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "zero", "key": "model.zero_stage", "values": [0, 1, 2, 3]},
           {"name": "overlap", "key": "model.overlap_gradients", "values": ["false", "true"]},
           )json" + axes + R"json(],
  "derived": [)json" + derived +
                           R"json(],
  "objectives": ["step_time", "peak_memory"]
})json",
                       "sweep.json", "");
  };
  const std::string eight = R"json({"name": "d", "key": "model.data_parallel", "value": "8"})json";
  const std::string buckets =
      R"json({"name": "bucket", "key": "model.bucket_bytes", "values": [1000000, 90000000]})json";
  const std::vector<SweepFile> files = {
      file_of(buckets + R"json(, {"name": "prefetch", "key": "model.prefetch", "values": [0, 1, 3]})json", eight),
      file_of(R"json({"name": "prefetch", "key": "model.prefetch", "values": [8, 1, 0]}, )json" + buckets, eight),
      file_of(R"json({"name": "prefetch", "key": "model.prefetch", "values": [1, 0, 2]}, )json" + buckets,
              R"json({"name": "d", "key": "model.data_parallel", "value": "2 ^ prefetch"})json"),
      file_of(R"json({"name": "form", "options": {"a": {"model.bucket_bytes": 1000000},
              "b": {"model.bucket_bytes": 1000000, "model.data_parallel": 2}, "c": {"model.data_parallel": 4}}})json",
              ""),
  };
  for (const SweepFile& file : files) {
    SweepScreen alone(file), shared(file);
    SweepSpace space(file);
    SweepLooks looks(file, space, shared);
    for (std::int64_t number = 0; number < space.size(); ++number) {
      const SweepSettings settings = space.settings(space.at(number));
      expect_equal(looks.first(number), alone.first_look(settings), number);
      expect_equal(looks.second(number), alone.second_look(settings), number);
    }
    for (std::int64_t number = 0; number < space.size(); ++number) {
      SweepEstimate& look = looks.second(number);
      const SweepSettings settings = space.settings(space.at(number));
      shared.add_cached(look, settings);
      expect_equal(look, alone.estimate(settings), number);
    }
  }
}

// Points of one state have one replay, event for event; and of what a step may look at, something is seen.
TEST(SweepScreen, EqualStatesAreEqualSteps) {
  for (const std::string framework : {"megatron_2022", "megatron", "eager"}) {
    const SweepFile file = parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 128, "layers": 4, "data_parallel": 4,
           "gradient_accumulation": 2, "framework": ")json" +
                                           framework +
                                           R"json("}, "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "zero", "key": "model.zero_stage", "values": [0, 1, 2, 3]},
           {"name": "t", "key": "model.tensor_parallel", "values": [1, 2]},
           {"name": "overlap", "key": "model.overlap_gradients", "values": ["false", "true"]},
           {"name": "loss", "key": "model.loss", "values": ["fp32", "native", "fused"]},
           {"name": "bucket", "key": "model.bucket_bytes", "values": [1000000, 30000000]},
           {"name": "prefetch", "key": "model.prefetch", "values": [0, 2]}],
  "objectives": ["step_time"]
})json",
                                       "sweep.json", "");
    SweepScreen screen(file);
    SweepSpace space(file);
    SweepWorker worker(file);
    std::map<std::uint64_t, Row> states;
    for (std::int64_t number = 0; number < space.size(); ++number) {
      const SweepSettings settings = space.settings(space.at(number));
      const std::uint64_t state = screen.state_key(settings);
      ASSERT_NE(state, 0U);
      const Row replay = worker.replay(edits_of(settings));
      ASSERT_EQ(replay.error, "");
      const Row& first = states.emplace(state, replay).first->second;
      EXPECT_EQ(replay.result.fingerprint, first.result.fingerprint)
          << framework << " " << space.label(space.at(number));
      EXPECT_EQ(replay.result.step_time, first.result.step_time);
      EXPECT_EQ(replay.result.memory.peak_reserved, first.result.memory.peak_reserved);
    }
    EXPECT_LT(states.size() * 3, static_cast<std::size_t>(space.size())) << framework;
    EXPECT_GT(states.size(), 20U) << framework;
  }
}

// Of a sweep of two blocks: seeds are worsts of points of it, as good as the best of all or near it; and what a screen
// leaves with them is what looking at every point leaves, to a point.
TEST(SweepSeeds, RuleOutNothingThatTheWholeScreenWouldNot) {
  SweepFile file = parse_sweep(R"json({
  "schema": "spillway-sweep", "version": 1,
  "base": {"model": {"name": "gpt2-small", "sequence": 512, "global_batch": 64, "framework": "megatron_2022"},
           "hardware": {"profile": "dgx-a100"}},
  "axes": [{"name": "t", "key": "model.tensor_parallel", "values": [1, 2]},
           {"name": "p", "key": "model.pipeline_parallel", "values": [1, 2]},
           {"name": "b", "key": "model.micro_batch", "values": [1, 2, 4]},
           {"name": "zero", "key": "model.zero_stage", "values": [0, 1, 2, 3]},
           {"name": "overlap", "key": "model.overlap_gradients", "values": ["false", "true"]},
           {"name": "recompute", "key": "model.recompute", "values": ["none", "full"]},
           {"name": "bucket", "key": "model.bucket_bytes", "from": 1000000, "to": 64000000, "step": 500000},
           {"name": "prefetch", "key": "model.prefetch", "values": [0, 2, 4]}],
  "derived": [{"name": "d", "key": "model.data_parallel", "value": "8 / (t * p)"}],
  "objectives": ["step_time", "peak_memory"], "margin": 0.02, "memory_margin": 0.02, "replays": 1
})json",
                               "sweep.json", "");
  ASSERT_GT(file.points(), sweep_block_points);
  SweepScreen screen(file);
  const SweepFront seeds = sweep_seeds(file, screen);
  SweepSpace space(file);
  SweepLooks looks(file, space, screen);
  SweepFront sure(2);
  std::set<SweepValues> worsts;
  for (std::int64_t number = 0; number < space.size(); ++number) {
    SweepEstimate& look = looks.second(number);
    screen.add_cached(look, space.settings(space.at(number)));
    ASSERT_EQ(look.invalid, "");
    if (!look.does(file)) continue;
    sure.add(look.worst(file));
    worsts.insert(look.worst(file));
  }
  ASSERT_FALSE(seeds.points().empty());
  const auto least = [](const SweepFront& front, std::size_t objective) {
    double value = front.points().front()[objective];
    for (const SweepValues& one : front.points()) value = std::min(value, one[objective]);
    return value;
  };
  for (const SweepValues& seed : seeds.points()) EXPECT_TRUE(worsts.contains(seed));
  for (const std::size_t objective : {0, 1}) EXPECT_LE(least(seeds, objective), 1.1 * least(sure, objective));

  std::int64_t left = 0, unable = 0;
  for (std::int64_t number = 0; number < space.size(); ++number) {
    const SweepEstimate& look = looks.second(number);
    unable += look.may_do(file) ? 0 : 1;
    left += look.may_do(file) && !sure.beats(look.best(file)) ? 1 : 0;
  }
  SweepStore store;
  const SweepOutcome outcome = run_sweep(file, {}, store);
  EXPECT_EQ(outcome.screened, space.size());
  EXPECT_EQ(outcome.screened - outcome.unable - outcome.beaten, left);
  EXPECT_LE(outcome.unable, unable);
  EXPECT_GT(left, 0);
}

}  // namespace
}  // namespace spillway::studies
