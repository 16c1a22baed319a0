// What hangs on an executor: sinks that watch.
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
  void add(const char* what, ActivityId a, Picos t) {
    log += what + std::to_string(index(a)) + "@" + std::to_string(t.count()) + " ";
  }
};

// completions -> dispatch -> re-solve
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
  EXPECT_EQ(executor.sink().log, "start0@0 start2@0 end0@5 end2@5 start1@5 rate1@5=2 end1@15 ");
}

}  // namespace
}  // namespace spillway::sim
