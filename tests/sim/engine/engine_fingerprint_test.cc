#include "sim/engine/fingerprint.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/engine/executor.h"
#include "tests/sim/engine/engine_random.h"

namespace spillway::sim {
namespace {

using test::Random;

struct Event {
  Picos start{}, length{};
  std::uint32_t kind = 0;
};

LaneDigest lane_of(const std::vector<Event>& events, Picos shift = Picos{}) {
  LaneDigest lane;
  for (const Event& event : events) lane.add(event.start + shift, event.length, event.kind);
  return lane;
}

std::vector<Event> random_events(Random& random, std::int64_t count) {
  std::vector<Event> events;
  Picos at{};
  for (std::int64_t i = 0; i < count; ++i) {
    at += Picos(random.between(0, 1'000'000));
    events.push_back({at, Picos(random.between(0, 1'000'000)), static_cast<std::uint32_t>(random.below(3))});
  }
  return events;
}

std::vector<Event> written_out(const std::vector<Event>& period_events, std::int64_t times, Picos period) {
  std::vector<Event> all;
  for (std::int64_t n = 0; n < times; ++n)
    for (Event event : period_events) {
      event.start += period * n;
      all.push_back(event);
    }
  return all;
}

TEST(LaneDigest, RepeatedIsWrittenOut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::vector<Event> events = random_events(random, random.between(0, 12));
    const Picos period(random.between(0, 20'000'000));
    const std::int64_t times = random.between(0, 40);
    const LaneDigest folded = lane_of(events).repeated(static_cast<std::uint64_t>(times), period);
    EXPECT_EQ(folded, lane_of(written_out(events, times, period))) << seed;
  }
}

// Layers in micro-batches in steps, with what comes before and after: as a whole, and folded at every level.
TEST(LaneDigest, FoldsNestAndFollowEachOther) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::vector<Event> layer = random_events(random, random.between(1, 5)), warm_up = random_events(random, 3),
                             cool_down = random_events(random, random.between(0, 3));
    const Picos layer_period(7'000'000), batch_period(80'000'000), batches_at(9'000'000), end_at(500'000'000);
    const std::vector<Event> batches = written_out(written_out(layer, 6, layer_period), 5, batch_period);
    LaneDigest whole = lane_of(warm_up), folded = whole;
    for (const Event& event : batches) whole.add(event.start + batches_at, event.length, event.kind);
    for (const Event& event : cool_down) whole.add(event.start + end_at, event.length, event.kind);
    folded.append(lane_of(layer).repeated(6, layer_period).repeated(5, batch_period), batches_at);
    folded.append(lane_of(cool_down), end_at);
    EXPECT_EQ(folded, whole) << seed;
  }
}

TEST(LaneDigest, AnyMovedEventShows) {
  Random random(3);
  const std::vector<Event> events = random_events(random, 20);
  const std::uint64_t value = lane_of(events).value(Picos{});
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (int change = 0; change < 3; ++change) {
      std::vector<Event> moved = events;
      if (change == 0) moved[i].start += Picos(1);
      if (change == 1) moved[i].length += Picos(1);
      if (change == 2) moved[i].kind += 1;
      EXPECT_NE(lane_of(moved).value(Picos{}), value) << i << " " << change;
    }
    std::vector<Event> without = events;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(lane_of(without).value(Picos{}), value) << i;
  }
}

TEST(Fingerprint, OriginIsFreeLanesAreNot) {
  Random random(4);
  const std::vector<Event> a = random_events(random, 10), b = random_events(random, 10);
  const auto of = [](const std::vector<LaneDigest>& lanes) { return fingerprint(lanes); };
  const std::uint64_t value = of({lane_of(a), lane_of(b)});
  const Picos shift(123'456'789);
  EXPECT_EQ(of({lane_of(a, shift), lane_of(b, shift)}), value);
  EXPECT_NE(of({lane_of(a), lane_of(b, Picos(1))}), value);  // one lane against the other
  EXPECT_NE(of({lane_of(b), lane_of(a)}), value);
  EXPECT_NE(of({lane_of(a), LaneDigest(), lane_of(b)}), value);
  EXPECT_EQ(of({}), 0u);
}

// A period: two lanes that hand over to each other, and a copy beside them over a shared link.
void add_period(ActivityGraph& g, Picos begin, Picos copy_later) {
  const TrackId host{0}, stream{1}, copies{2};
  const ActivityId launch = g.add_delay(host, microseconds(3)), kernel = g.add_delay(stream, microseconds(20)),
                   next = g.add_delay(stream, microseconds(5)), copy = g.add_flow(copies, 200'000, PathId{0}),
                   beside = g.add_flow(copies, 100'000, PathId{0});
  g.set_release(launch, begin);
  g.add_edge(launch, kernel, EdgeType::start_to_start, microseconds(4));
  g.add_edge(kernel, copy, EdgeType::end_to_start, copy_later);
  g.add_edge(kernel, beside);
  g.add_edge(copy, next, EdgeType::start_to_start);
}

Executor<> periods(int count, Picos begin, Picos period, int moved = -1) {
  ActivityGraph g;
  for (const std::uint32_t width : {1u, 1u, 2u}) g.add_lane(width);
  g.add_path({{g.add_link(rate_from_bytes_per_second(20e9))}});
  for (int n = 0; n < count; ++n) add_period(g, begin + period * n, n == moved ? Picos(1) : Picos{});
  g.finish();
  Executor<> executor(std::move(g));
  EXPECT_TRUE(executor.run().ok());
  return executor;
}

TEST(Fingerprint, StepsReplayedOneByOneAreOneStepFolded) {
  const Picos period = microseconds(60);
  const std::vector<LaneDigest> one = periods(1, Picos{}, period).lane_digests();
  for (const int count : {2, 3, 16, 100}) {
    std::vector<LaneDigest> folded;
    for (const LaneDigest& lane : one) folded.push_back(lane.repeated(static_cast<std::uint64_t>(count), period));
    const std::uint64_t value = fingerprint(periods(count, Picos{}, period).lane_digests());
    EXPECT_EQ(fingerprint(folded), value) << count;
    EXPECT_EQ(fingerprint(periods(count, microseconds(7), period).lane_digests()), value) << count;
    EXPECT_NE(fingerprint(periods(count, Picos{}, period + Picos(1)).lane_digests()), value) << count;
    EXPECT_NE(fingerprint(periods(count - 1, Picos{}, period).lane_digests()), value) << count;
    for (const int moved : {0, count / 2, count - 1})
      EXPECT_NE(fingerprint(periods(count, Picos{}, period, moved).lane_digests()), value) << count << " " << moved;
  }
}

// What has not started is not in it, so a run that goes on only ever adds.
TEST(Fingerprint, OfARunOnItsWay) {
  ActivityGraph g;
  const TrackId lane = g.add_lane();
  g.add_delay(lane, microseconds(10));
  g.add_delay(lane, microseconds(10));
  g.finish();
  Executor<> executor(std::move(g));
  const std::uint64_t running = executor.run_until(microseconds(5)).fingerprint;
  LaneDigest first;
  first.add(Picos{}, ExecutorState::not_yet, static_cast<std::uint32_t>(ActivityKind::delay));
  EXPECT_EQ(running, fingerprint(std::vector{first, LaneDigest()}));
  EXPECT_NE(executor.run().fingerprint, running);
}

}  // namespace
}  // namespace spillway::sim
