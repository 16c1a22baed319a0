// Against replays of every rank, each with jitter of its own.
#include "scenario/slowest_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "scenario/jitter.h"
#include "scenario/scenario_run.h"
#include "tests/test_size.h"

namespace spillway::scenario {
namespace {

// Tippett's table, and closed forms: 1 / sqrt(pi) and 1 - 1 / pi of two.
TEST(LargestOf, IsAsTabled) {
  EXPECT_NEAR(largest_of(1).mean, 0, 1e-9);
  EXPECT_NEAR(largest_of(1).variance, 1, 1e-4);
  EXPECT_NEAR(largest_of(2).mean, 0.56418958, 1e-6);
  EXPECT_NEAR(largest_of(2).variance, 1 - 1 / M_PI, 1e-4);
  EXPECT_NEAR(largest_of(10).mean, 1.53875, 1e-5);
  EXPECT_NEAR(largest_of(100).mean, 2.50759, 1e-5);
  EXPECT_NEAR(largest_of(1000).mean, 3.24144, 1e-5);
  for (std::int64_t n = 1; n < 1'000'000; n *= 3) {
    EXPECT_LT(largest_of(n).mean, largest_of(n + 1).mean);
    EXPECT_GT(largest_of(n).variance, largest_of(n + 1).variance);
  }
}

LoadedScenario loaded_step(const std::string& model) {
  return load(parse_scenario(
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 3, "micro_batch": 8, )" +
          model + R"(}, "hardware": {"profile": "dgx-h100"}})",
      "test.json", "/"));
}

double seconds_of(const LoadedScenario& step) { return to_seconds(run(step).step_time); }

double jittered_seconds(LoadedScenario step, std::uint64_t seed, double sigma) {
  const Jitter jitter{.seed = seed, .sigma = sigma, .slow_stages = {}};
  EXPECT_TRUE(wait_for_slowest(step.trace, jitter));
  apply_jitter(step.trace, jitter);
  return seconds_of(step);
}

// The same durations, in groups of which nobody else is expected.
LoadedScenario alone(LoadedScenario step) {
  for (Collective& collective : step.trace.collectives) collective.group_size = 1;
  return step;
}

// All ranks of groups of so many: `tensor` neighbours, and those of other tensor groups that are as far in theirs. The
// trace's own ranks, pipeline stages, come once for each. Nothing but time is replayed.
Trace every_rank(const Trace& trace, std::size_t tensor, std::size_t data) {
  Trace all;
  all.strings = trace.strings;
  all.steps = trace.steps;
  all.capture_fit = trace.capture_fit;
  const std::size_t ops = trace.ops.size(), copies = tensor * data;
  std::vector<std::vector<Edge>> into(ops);
  for (const Edge& edge : trace.edges) into[index_of(edge.to)].push_back(edge);
  const auto at = [&](OpId op, std::size_t copy) {
    return op == OpId::none ? op : OpId(static_cast<std::uint32_t>(index_of(op) + copy * ops));
  };
  for (std::size_t copy = 0; copy < copies; ++copy) {
    const auto shift = static_cast<std::uint16_t>(copy * trace.lanes.size());
    for (Lane lane : trace.lanes) {
      lane.rank = static_cast<std::uint16_t>(lane.rank + copy * trace.rank_count);
      all.lanes.push_back(lane);
    }
    for (Device device : trace.devices) {
      device.rank = static_cast<std::uint16_t>(device.rank + copy * trace.rank_count);
      all.devices.push_back(device);
    }
    for (std::size_t i = 0; i < ops; ++i) {
      OpRow row = trace.op(OpId(static_cast<std::uint32_t>(i)));
      row.lane = LaneId(static_cast<std::uint16_t>(index_of(row.lane) + shift));
      row.launched_by = at(row.launched_by, copy);
      row.span = SpanId::none;
      all.append_op(row);
    }
    for (Sync sync : trace.syncs) {
      sync.op = at(sync.op, copy);
      sync.event = at(sync.event, copy);
      if (sync.lane != LaneId::none) sync.lane = LaneId(static_cast<std::uint16_t>(index_of(sync.lane) + shift));
      all.syncs.push_back(sync);
    }
    for (Edge edge : trace.edges) {
      edge.from = at(edge.from, copy);
      edge.to = at(edge.to, copy);
      all.edges.push_back(edge);
    }
    for (Collective collective : trace.collectives) {
      const std::string_view group = trace.strings.text(collective.group);
      const bool is_between_stages = group == "send" || group == "receive" || group == "stages";
      for (std::size_t other = 0; other < copies && !is_between_stages; ++other) {
        const bool is_member = group == "tensor" ? other / tensor == copy / tensor : other % tensor == copy % tensor;
        if (!is_member || other == copy) continue;
        const OpId launch = trace.ops.launched_by[index_of(collective.op)];
        if (launch != OpId::none)
          all.edges.push_back({at(launch, other), at(collective.op, copy), EdgeKind::cross_stream, false, {}});
        for (const Edge& edge : into[index_of(collective.op)])
          all.edges.push_back({at(edge.from, other), at(collective.op, copy), EdgeKind::cross_stream, false, {}});
      }
      collective.op = at(collective.op, copy);
      collective.group_size = 1;
      all.collectives.push_back(collective);
    }
  }
  all.rank_count = static_cast<std::uint16_t>(trace.rank_count * copies);
  all.set(Capability::times);
  all.set(Capability::edges);
  return all;
}

struct RankCase {
  const char* model;
  std::size_t tensor, data;
};

// What a step loses beyond a rank of its own: expected of one rank, and found among all of them.
TEST(SlowestRank, IsExpectedAsManyRanksHaveIt) {
  constexpr double sigma = 0.3;
  const std::uint64_t seeds = test::seeds(24, 200);
  for (const RankCase& one :
       {RankCase{R"("data_parallel": 8)", 1, 8}, RankCase{R"("tensor_parallel": 4)", 4, 1},
        RankCase{R"("data_parallel": 8, "zero_stage": 3)", 1, 8},
        RankCase{R"("tensor_parallel": 2, "data_parallel": 4)", 2, 4},
        RankCase{R"("pipeline_parallel": 2, "data_parallel": 4, "gradient_accumulation": 4)", 1, 4}}) {
    const LoadedScenario step = loaded_step(one.model), single = alone(step);
    LoadedScenario many = single;
    many.trace = every_rank(step.trace, one.tensor, one.data);
    const double plain = seconds_of(step);
    EXPECT_EQ(seconds_of(many), plain) << one.model;
    double expected = 0, found = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      expected += jittered_seconds(step, seed, sigma) - jittered_seconds(single, seed, sigma);
      found += jittered_seconds(many, seed, sigma) - plain;
    }
    EXPECT_GT(found, 0.03 * plain * static_cast<double>(seeds)) << one.model;
    EXPECT_NEAR(expected / found, 1, 0.2) << one.model;
  }
}

// A group of one is a rank alone; each larger one waits longer; without jitter all take as long.
TEST(SlowestRank, LargerGroupsWaitLonger) {
  for (const char* model : {R"("data_parallel": 8)", R"("tensor_parallel": 4)",
                            R"("data_parallel": 8, "zero_stage": 3)", R"("context_parallel": 4)"}) {
    LoadedScenario step = loaded_step(model);
    const double plain = seconds_of(step);
    double before = jittered_seconds(alone(step), 1, 0.1);
    for (std::uint32_t ranks = 2; ranks < 5000; ranks *= 4) {
      for (Collective& collective : step.trace.collectives) collective.group_size = ranks;
      const double now = jittered_seconds(step, 1, 0.1);
      EXPECT_GT(now, before) << model << " " << ranks;
      EXPECT_EQ(jittered_seconds(step, 1, 0), plain) << model << " " << ranks;
      before = now;
    }
  }
}

// Through a scenario: the wait is the network's, and no faster network shortens it.
TEST(SlowestRank, ScenariosWait) {
  const auto result = [](const std::string& more) {
    return run(load(parse_scenario(
        R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "layers": 3, "micro_batch": 8,)"
        R"( "tensor_parallel": 4}, "hardware": {"profile": "dgx-h100")" +
            more + "}",
        "test.json", "/")));
  };
  constexpr auto network = static_cast<std::size_t>(Binding::network);
  const Result plain = result("}"), slow = result(R"(, "jitter": {"sigma": 0.3}})");
  EXPECT_GT(to_seconds(slow.step_time), 1.05 * to_seconds(plain.step_time));
  EXPECT_GT(slow.breakdown[network], plain.breakdown[network]);
  const Result fast = result(R"(}, "what_if": {"network": 1e6})"),
               fast_slow = result(R"(, "jitter": {"sigma": 0.3}}, "what_if": {"network": 1e6})");
  EXPECT_GT(to_seconds(fast_slow.step_time - fast.step_time), 0.8 * to_seconds(slow.step_time - plain.step_time));
}

// A recording whose calls, not edges, say what its collectives wait for.
TEST(SlowestRank, WhatIsNotKnownIsSaid) {
  LoadedScenario step = loaded_step(R"("tensor_parallel": 4)");
  const Jitter jitter{.seed = 1, .sigma = 0.1, .slow_stages = {}};
  Trace unsized = step.trace, untied = step.trace, none = step.trace;
  unsized.collectives.front().group_size = 0;
  EXPECT_FALSE(wait_for_slowest(unsized, jitter));
  untied.edges.clear();
  EXPECT_FALSE(wait_for_slowest(untied, jitter));
  none.edges.clear();
  none.collectives.clear();
  EXPECT_TRUE(wait_for_slowest(none, jitter));
}

}  // namespace
}  // namespace spillway::scenario
