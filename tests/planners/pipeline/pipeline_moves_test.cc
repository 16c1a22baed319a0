// Orders as flat arrays have the executor's times and memory; annealing never makes them longer or fuller.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "models/pipeline/named_schedules.h"
#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/lane_orders.h"
#include "planners/pipeline/schedule_moves.h"

namespace spillway::planners {
namespace {

struct Case {
  std::string_view name;
  std::int64_t chunks, recomputed;
};
constexpr Case move_cases[] = {{"1f1b", 1, 0},   {"gpipe", 1, 0}, {"zb-h2", 1, 0},   {"interleaved", 2, 0},
                               {"v-half", 2, 0}, {"zb-v", 2, 0},  {"chronos", 2, 1}, {"chronos", 3, 2},
                               {"gis-h", 2, 0},  {"gis", 4, 4},   {"hanayo", 2, 0}};

struct Problem {
  PipelinePlan plan;
  StageTimes times;
};

Problem problem(const Case& each, std::mt19937& random) {
  PipelineRequest request;
  request.devices = 4;
  request.micro_batches = 8;
  request.chunks = each.chunks;
  request.recomputed_chunks = each.recomputed;
  request.times.positions.clear();
  const auto draw = [&](unsigned most) { return static_cast<Ticks>(10 + random() % most); };
  for (std::int64_t i = 0; i < 4 * each.chunks; ++i)
    request.times.positions.push_back({draw(20), draw(20), draw(20), draw(20)});
  request.times.transfer = draw(10);
  PipelinePlan plan = build_schedule(each.name, request);
  split_backwards(plan);
  return {std::move(plan), request.times};
}

// The same makespan, transfers beside compute or blocking it.
TEST(LaneOrders, TimesAreTheExecutors) {
  std::mt19937 random(5);
  for (const Case& each : move_cases) {
    for (const bool is_blocking : {false, true}) {
      Problem made = problem(each, random);
      made.times.blocking_transfers = is_blocking;
      ASSERT_TRUE(LaneOrders::covers(made.plan)) << each.name;
      LaneOrders orders(made.plan, made.times, {}, {});
      EXPECT_EQ(orders.run(), execute_plan(made.plan, made.times).makespan) << each.name;
    }
  }
}

// A lane fits its own peak, and no more than the fitting part of it a millionth below.
TEST(LaneOrders, MemoryIsTheProfiles) {
  std::mt19937 random(6);
  const ActivationRules rules{.weight_part = 600'000, .checkpoint = 50'000};
  for (const Case& each : move_cases) {
    const Problem made = problem(each, random);
    std::vector<double> peaks = activation_peaks(made.plan, execute_plan(made.plan, made.times), rules);
    const LaneOrders fits(made.plan, made.times, peaks, rules);
    for (double& peak : peaks) peak -= 2e-6;
    const LaneOrders full(made.plan, made.times, peaks, rules);
    for (std::size_t d = 0; d < peaks.size(); ++d) {
      EXPECT_EQ(fits.overflow(d, fits.lanes[d]), fits.lanes[d].size()) << each.name;
      EXPECT_LT(full.overflow(d, full.lanes[d]), full.lanes[d].size()) << each.name;
    }
  }
}

TEST(LaneOrders, WritesWhatItRead) {
  std::mt19937 random(7);
  for (const Case& each : move_cases) {
    const Problem made = problem(each, random);
    PipelinePlan again = made.plan;
    LaneOrders(made.plan, made.times, {}, {}).write(again);
    for (std::size_t d = 0; d < again.compute.size(); ++d) {
      ASSERT_EQ(again.compute[d].size(), made.plan.compute[d].size());
      for (std::size_t i = 0; i < again.compute[d].size(); ++i)
        EXPECT_EQ(text_of(again, again.compute[d][i]), text_of(made.plan, made.plan.compute[d][i]));
    }
  }
}

// The longest path is one without a gap: its operations' times add up to the makespan when nothing is transferred.
TEST(LaneOrders, LongestPathHasNoGap) {
  std::mt19937 random(8);
  for (const Case& each : move_cases) {
    Problem made = problem(each, random);
    made.times.transfer = 0;
    LaneOrders orders(made.plan, made.times, {}, {});
    const std::optional<Ticks> makespan = orders.run();
    std::vector<LaneOrders::Block> blocks;
    orders.longest_path([&] { return random() % 2 == 0; }, blocks);
    const PipelineTimeline timeline = execute_plan(made.plan, made.times);
    Ticks total = 0;
    for (const LaneOrders::Block& block : blocks)
      for (std::size_t i = block.first; i <= block.last; ++i) {
        const TickSpan span = timeline.compute[block.device][i];
        total += span.end - span.begin;
      }
    EXPECT_EQ(total, makespan) << each.name;
  }
}

bool recomputes(const PipelinePlan& plan) {
  for (const auto& lane : plan.compute)
    for (const PipelineOp& op : lane)
      if (op.kind == PipelineOpKind::recompute) return true;
  return false;
}

TEST(ScheduleMoves, NeverLongerNorFuller) {
  std::mt19937 random(9);
  for (const Case& each : move_cases) {
    for (const bool may_recompute : {false, true}) {
      Problem made = problem(each, random);
      const PipelineTimeline before = execute_plan(made.plan, made.times);
      MoveRequest request;
      request.times = made.times;
      request.limits = activation_peaks(made.plan, before);
      request.recompute = may_recompute;
      request.moves = 3'000;
      PipelinePlan plan = made.plan;
      const Ticks reached = improve_plan(plan, request);
      check_plan(plan);
      const PipelineTimeline after = execute_plan(plan, made.times);
      EXPECT_EQ(after.makespan, reached);
      EXPECT_LE(reached, before.makespan) << each.name;
      const std::vector<double> peaks = activation_peaks(plan, after);
      for (std::size_t d = 0; d < peaks.size(); ++d) EXPECT_LE(peaks[d], request.limits[d] + 1e-9) << each.name;
      if (!may_recompute && each.recomputed == 0) {
        EXPECT_FALSE(recomputes(plan)) << each.name;
      }
    }
  }
}

// What doesn't fit at the beginning, and what isn't covered, stays as it is.
TEST(ScheduleMoves, LeavesWhatItCannotImprove) {
  std::mt19937 random(10);
  Problem made = problem({"gpipe", 1, 0}, random);
  MoveRequest request;
  request.times = made.times;
  request.limits.assign(4, 2.0);
  PipelinePlan plan = made.plan;
  EXPECT_EQ(improve_plan(plan, request), execute_plan(made.plan, made.times).makespan);
  EXPECT_EQ(plan.compute[0].size(), made.plan.compute[0].size());

  PipelineRequest paired;
  paired.devices = 4;
  paired.micro_batches = 8;
  paired.times.positions = {{4, 4, 4, 4}};
  PipelinePlan dual = build_schedule("dualpipe", paired);
  EXPECT_FALSE(LaneOrders::covers(dual));
  request.times = paired.times;
  EXPECT_EQ(improve_plan(dual, request), execute_plan(dual, paired.times).makespan);
}

}  // namespace
}  // namespace spillway::planners
