#include "sim/engine/executor.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

// One unit per picosecond: the rate at which amounts read as picoseconds.
constexpr Rate executor_unit{std::int64_t{1000} << 20};

Outcome run_checked(Executor<>& executor) {
  const Outcome outcome = executor.run();
  EXPECT_EQ(executor.check_conservation(), "");
  return outcome;
}

// A compute-bound chain: the end is the sum of the durations.
TEST(Executor, ChainOnALane) {
  ActivityGraph g;
  const TrackId lane = g.add_lane();
  for (int i = 1; i <= 100; ++i) g.add_delay(lane, Picos(i));
  g.finish();
  Executor<> executor(std::move(g));
  const Outcome outcome = run_checked(executor);
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.end_time, Picos(5050));
}

// start = max(release, edge source + lag, lane predecessor + gap).
TEST(Executor, StartIsTheLatestOfItsConditions) {
  ActivityGraph g;
  const TrackId one = g.add_lane(), two = g.add_lane();
  const ActivityId a = g.add_delay(one, Picos(100));
  const ActivityId b = g.add_delay(one, Picos(10));
  g.set_gap(b, Picos(7));  // 107
  const ActivityId c = g.add_delay(two, Picos(1));
  g.add_edge(a, c, EdgeType::start_to_start, Picos(30));  // 30
  const ActivityId d = g.add_delay(two, Picos(1));
  g.add_edge(a, d, EdgeType::end_to_start, Picos(3));  // 103
  const ActivityId e = g.add_instant(two);
  g.set_release(e, Picos(500));
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_EQ(run_checked(executor).end_time, Picos(500));
  EXPECT_EQ(executor.start(b), Picos(107));
  EXPECT_EQ(executor.start(c), Picos(30));
  EXPECT_EQ(executor.start(d), Picos(103));
  EXPECT_EQ(executor.start(e), Picos(500));
  EXPECT_EQ(executor.end(e), Picos(500));
}

// Width 2: three equal delays take two rounds, started in order.
TEST(Executor, WideLane) {
  ActivityGraph g;
  const TrackId lane = g.add_lane(2);
  const ActivityId a = g.add_delay(lane, Picos(10)), b = g.add_delay(lane, Picos(4));
  const ActivityId c = g.add_delay(lane, Picos(10)), d = g.add_delay(lane, Picos(1));
  g.set_gap(c, Picos(2));
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_EQ(run_checked(executor).end_time, Picos(16));
  EXPECT_EQ(executor.start(a), Picos(0));
  EXPECT_EQ(executor.start(b), Picos(0));
  EXPECT_EQ(executor.start(c), Picos(6));  // b's slot at 4, gap 2
  EXPECT_EQ(executor.start(d), Picos(10));
}

// Two flows on one link of 1 unit/ps: 100 and 300 units share until 200, then one alone until 400.
TEST(Executor, TwoFlowsShareALink) {
  ActivityGraph g;
  const LinkId link = g.add_link(executor_unit);
  const PathId path = g.add_path({{link}});
  const ActivityId a = g.add_flow(no_lane, 100, path), b = g.add_flow(no_lane, 300, path);
  g.finish();
  Executor<> executor(std::move(g));
  run_checked(executor);
  EXPECT_EQ(executor.end(a), Picos(200));
  EXPECT_EQ(executor.end(b), Picos(400));
  EXPECT_EQ(executor.link_totals(link).units, 400);
  EXPECT_EQ(executor.link_totals(link).busy, Picos(400));
}

// The capacity halves at 100: 100 units at rate 1, then 100 more at 1/2 take 200.
TEST(Executor, CapacityChangeIsAnEvent) {
  ActivityGraph g;
  const LinkId link = g.add_link(executor_unit);
  const ActivityId a = g.add_flow(no_lane, 200, g.add_path({{link}}));
  g.add_capacity_change(Picos(100), link, executor_unit / 2);
  g.finish();
  Executor<> executor(std::move(g));
  run_checked(executor);
  EXPECT_EQ(executor.end(a), Picos(300));
}

// Cache of 600 filled at 3 - 1 units/ps is full at 300 (900 written); the last 300 go at the slow rate 1: 600.
TEST(Executor, ReservoirFillsAndSlowsTheLink) {
  ActivityGraph g;
  const LinkId link = g.add_link(executor_unit);
  const ReservoirId cache = g.add_reservoir({.link = link,
                                             .size = 600,
                                             .resume_level = 100,
                                             .initial_level = 0,
                                             .drain = executor_unit,
                                             .fast = executor_unit * 3,
                                             .slow = executor_unit});
  const PathId path = g.add_path({{link}});
  const ActivityId a = g.add_flow(no_lane, 1200, path);
  // Idle from 600: level 600 drains to 100 in 500. At 1100 the link is fast again: 30 units in 10 ps.
  const ActivityId b = g.add_flow(no_lane, 30, path);
  g.set_release(b, Picos(1100));
  g.finish();
  Executor<> executor(std::move(g));
  run_checked(executor);
  EXPECT_EQ(executor.end(a), Picos(600));
  EXPECT_EQ(executor.end(b), Picos(1110));
  EXPECT_EQ(executor.reservoir(cache).level(), 120);
  EXPECT_FALSE(executor.reservoir(cache).full());
}

TEST(Executor, CycleIsReported) {
  ActivityGraph g;
  const TrackId lane = g.add_lane();
  const ActivityId a = g.add_delay(lane, Picos(1)), b = g.add_delay(lane, Picos(1));
  const ActivityId c = g.add_delay(no_lane, Picos(1));
  g.add_edge(c, a);
  g.add_edge(b, c);  // a waits for c, c for b, b for a (lane order)
  g.add_delay(no_lane, Picos(5));
  g.finish();
  Executor<> executor(std::move(g));
  const Outcome outcome = run_checked(executor);
  EXPECT_EQ(outcome.status, RunStatus::deadlock);
  EXPECT_EQ(outcome.cycle, (std::vector<ActivityId>{a, c, b}));
  EXPECT_EQ(outcome.text(), "deadlock: 0 -> 2 -> 1 -> 0 (each waits for the next)");
  EXPECT_EQ(outcome.ended, 1u);
}

TEST(Executor, StalledFlowIsReported) {
  ActivityGraph g;
  const LinkId link = g.add_link(Rate(0));
  const ActivityId a = g.add_flow(no_lane, 1, g.add_path({{link}}));
  const ActivityId b = g.add_delay(no_lane, Picos(1));
  g.add_edge(a, b);
  g.finish();
  Executor<> executor(std::move(g));
  const Outcome outcome = run_checked(executor);
  EXPECT_EQ(outcome.status, RunStatus::stalled);
  EXPECT_EQ(outcome.waiting, std::vector<ActivityId>{a});
}

TEST(Executor, EndOfTimeIsAnInputError) {
  ActivityGraph g;
  const TrackId lane = g.add_lane();
  g.add_delay(lane, Picos::max() - Picos(1));
  g.add_delay(lane, Picos(5));
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_THROW(executor.run(), InputError);
}

TEST(Executor, EmptyGraph) {
  ActivityGraph g;
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_TRUE(executor.run().ok());
}

// Edges are staged until the graph is finished, and not kept twice behind that.
TEST(ActivityGraph, FinishingGivesStagedEdgesBack) {
  ActivityGraph graph;
  const TrackId lane = graph.add_lane();
  std::vector<ActivityId> activities;
  for (int i = 0; i < 1'000; ++i) activities.push_back(graph.add_delay(lane, Picos(1)));
  for (std::size_t i = 0; i + 3 < activities.size(); ++i)
    for (std::size_t ahead = 1; ahead < 4; ++ahead) graph.add_edge(activities[i], activities[i + ahead]);
  const std::size_t staged = graph.memory_bytes();
  graph.finish();
  EXPECT_LT(graph.memory_bytes(), staged);
}

}  // namespace
}  // namespace spillway::sim
