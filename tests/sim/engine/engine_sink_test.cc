// What hangs on an executor: sinks that watch, controllers that interfere.
#include <gtest/gtest.h>

#include <string>

#include "sim/engine/executor.h"

namespace spillway::sim {
namespace {

constexpr Rate sink_unit{std::int64_t{1000} << 20};

struct Recorder {
  std::string log;
  void on_start(ActivityId a, Picos t) { add("start", a, t); }
  void on_end(ActivityId a, Picos t) { add("end", a, t); }
  void on_rate(ActivityId a, Picos t, Rate r) {
    add("rate", a, t);
    log.back() = '=';
    log += std::to_string(r / sink_unit) + " ";
  }
  void on_instant(Executor<Recorder>&, EventPhase phase, Picos t) {
    const char* name = phase == EventPhase::free ? "free@" : phase == EventPhase::allocation ? "alloc@" : "sample@";
    log += name + std::to_string(t.count()) + " ";
  }
  void add(const char* what, ActivityId a, Picos t) {
    log += what + std::to_string(index(a)) + "@" + std::to_string(t.count()) + " ";
  }
};

// completions -> frees -> allocations -> dispatch -> re-solve -> sampling
TEST(Sink, SeesPhasesInOrder) {
  ActivityGraph g;
  const TrackId lane = g.add_lane();
  const PathId path = g.add_path({{g.add_link(sink_unit * 2)}});
  g.add_delay(lane, Picos(5));
  g.add_flow(lane, 20, path);
  g.add_delay(no_lane, Picos(5));
  g.finish();
  Executor<Recorder> executor(std::move(g));
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.sink().log,
            "start0@0 start2@0 sample@0 "
            "end0@5 end2@5 free@5 alloc@5 start1@5 rate1@5=2 sample@5 "
            "end1@15 free@15 alloc@15 sample@15 ");
}

// At its first sampling it adds an activity after each running one and holds back the one that is waiting.
struct Controller {
  bool done = false;
  void on_instant(Executor<Controller>& executor, EventPhase phase, Picos now) {
    if (phase == EventPhase::free && now == Picos(50)) executor.unblock(ActivityId{1});
    if (phase != EventPhase::sampling || done) return;
    done = true;
    executor.append([](ActivityGraph& g) {
      const ActivityId late = g.add_delay(no_lane, Picos(100));
      g.add_edge(ActivityId{0}, late);
      const ActivityId timer = g.add_delay(no_lane, Picos(50));
      g.add_edge(ActivityId{0}, timer, EdgeType::start_to_start);
      g.add_edge(late, ActivityId{2});
    });
    executor.block(ActivityId{1});
  }
};

TEST(Controller, AppendsAndBlocks) {
  ActivityGraph g;
  const TrackId lane = g.add_lane(), other = g.add_lane();
  g.add_delay(lane, Picos(10));
  const ActivityId held = g.add_delay(lane, Picos(10));
  const ActivityId waits = g.add_delay(other, Picos(1));
  g.set_release(waits, Picos(20));
  g.finish();
  Executor<Controller> executor(std::move(g));
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.check_conservation(), "");
  EXPECT_EQ(executor.start(held), Picos(50));
  EXPECT_EQ(executor.start(waits), Picos(110));
  EXPECT_EQ(executor.graph().size(), 5u);
}

// An edge added to an activity that was already due (by a lag) holds it after all; satisfied later, it starts once.
TEST(Controller, LateEdgeHoldsAScheduledActivity) {
  ActivityGraph g;
  const ActivityId first = g.add_delay(no_lane, Picos(10)), second = g.add_delay(no_lane, Picos(10));
  g.add_edge(first, second, EdgeType::end_to_start, Picos(20));
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_EQ(executor.run_until(Picos(15)).status, RunStatus::paused);
  executor.append([&](ActivityGraph& graph) { graph.add_edge(graph.add_delay(no_lane, Picos(5)), second); });
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.start(second), Picos(30));
  EXPECT_EQ(executor.check_conservation(), "");

  executor.append([&](ActivityGraph& graph) { graph.add_edge(second, graph.add_delay(no_lane, Picos(5))); });
  EXPECT_EQ(executor.run().end_time, Picos(45));  // a run that had finished goes on from its end at 40
}

// The lag of an appended edge counts from when its source ended (started), though that has passed.
TEST(Controller, LateEdgeFromThePastKeepsItsLag) {
  ActivityGraph g;
  const ActivityId first = g.add_delay(no_lane, Picos(10));
  g.add_delay(no_lane, Picos(100));
  g.finish();
  Executor<> executor(std::move(g));
  executor.run_until(Picos(20));
  ActivityId after_end{}, after_start{};
  executor.append([&](ActivityGraph& graph) {
    graph.add_edge(first, after_end = graph.add_delay(no_lane, Picos(1)), EdgeType::end_to_start, Picos(30));
    graph.add_edge(first, after_start = graph.add_delay(no_lane, Picos(1)), EdgeType::start_to_start, Picos(25));
  });
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.start(after_end), Picos(40));
  EXPECT_EQ(executor.start(after_start), Picos(25));
}

// Activities appended to lanes queue behind what is there, also on a wide lane and one that ran empty.
TEST(Controller, AppendsToLanes) {
  ActivityGraph g;
  const TrackId narrow = g.add_lane(), wide = g.add_lane(2), idle = g.add_lane();
  g.add_delay(narrow, Picos(10));
  for (int i = 0; i < 2; ++i) g.add_delay(wide, Picos(10 + i));
  g.finish();
  Executor<> executor(std::move(g));
  executor.run_until(Picos(4));
  executor.append([&](ActivityGraph& graph) {
    for (const TrackId lane : {narrow, wide, idle}) graph.add_delay(lane, Picos(1));
  });
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.start(ActivityId{3}), Picos(10));
  EXPECT_EQ(executor.start(ActivityId{4}), Picos(10));
  EXPECT_EQ(executor.start(ActivityId{5}), Picos(4));
  EXPECT_EQ(executor.check_conservation(), "");
}

TEST(Controller, BlockedForEverIsReported) {
  ActivityGraph g;
  const ActivityId a = g.add_delay(no_lane, Picos(1)), b = g.add_delay(no_lane, Picos(1));
  g.add_edge(a, b);
  g.finish();
  Executor<> executor(std::move(g));
  executor.block(a);
  const Outcome outcome = executor.run();
  EXPECT_EQ(outcome.status, RunStatus::stalled);
  EXPECT_EQ(outcome.waiting, std::vector<ActivityId>{a});
  executor.unblock(a);
  EXPECT_TRUE(executor.run().ok());
}

}  // namespace
}  // namespace spillway::sim
