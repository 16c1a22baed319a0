// What a step is short of: found with the allocator under the limit, not from what it reserves without one.
#include "scenario/least_capacity.h"

#include <gtest/gtest.h>

#include "tests/sim/replay/request_stream.h"

namespace spillway::scenario {
namespace {

using namespace sim::test;

// 30 MiB, given back, then 60 MiB: without a limit the cache keeps the first segment, 30 + 60 = 90 MiB reserved. Under
// a limit it goes back to the driver: 60 MiB do.
TEST(LeastCapacity, CountsOnTheCacheGivingSegmentsBack) {
  const Trace trace = stream({{take, 1, 30}, {give, 1, 30}, {take, 2, 60}});
  const MemoryReplayOptions options = within(mebibytes(20));
  ASSERT_EQ(MemoryReplay(trace, options).peaks().front().reserved, mebibytes(90));
  EXPECT_EQ(least_capacity(trace, options), mebibytes(60));
}

// Exact to the torch allocator's 2 MiB: the stream runs within it, and not within 2 MiB less.
TEST(LeastCapacity, IsTheEdge) {
  const Trace trace = stream({{take, 1, 11}, {take, 2, 25}, {give, 1, 11}, {take, 3, 7}, {take, 4, 40}, {give, 2, 25}});
  MemoryReplayOptions options = within(mebibytes(1));
  options.capacity = least_capacity(trace, options).value();
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::fits);
  options.capacity = options.capacity - mebibytes(2);
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::does_not_fit);
}

// However many limits are left out as alike; known peaks are not found again.
TEST(LeastCapacity, IsTheEdgeOfRandomStreams) {
  Random random(31);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const Trace trace = random_stream(random, i % 2 == 1);
    MemoryReplayOptions options = within(mebibytes(20));
    DevicePeaks peaks = MemoryReplay(trace, options).peaks().front();
    const Bytes least = least_capacity(trace, options).value();
    EXPECT_EQ(least_capacity(trace, options, peaks), least);
    options.capacity = least;
    EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::fits);
    options.capacity = least - mebibytes(2);
    EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::does_not_fit);
  }
}

// Under every limit below the least one that was refused.
TEST(LeastCapacity, LimitsThatARunMeetsAlikeAreOne) {
  Random random(32);
  for (int i = 0; i < 20; ++i) {
    const Trace trace = random_stream(random, i % 2 == 1);
    const auto within_limit = [&trace](Bytes limit) {
      AllocationStreamOptions options = stream_options(within(limit), 0, limit);
      options.stop_when_out_of_memory = true;
      return replay_allocation_stream(trace, options);
    };
    for (Bytes limit = mebibytes(40); limit < mebibytes(400); limit += mebibytes(20)) {
      const AllocationStreamResult run = within_limit(limit);
      if (run.least_refused == Bytes::max()) break;
      ASSERT_GT(run.least_refused, limit);
      const AllocationStreamResult as_wide = within_limit(run.least_refused - Bytes(1));
      EXPECT_EQ(as_wide.first_failed_event, run.first_failed_event);
      EXPECT_EQ(as_wide.statistics.all().reserved_bytes.peak, run.statistics.all().reserved_bytes.peak);
      EXPECT_EQ(as_wide.allocations, run.allocations);
    }
  }
}

// Of two devices the needier one decides; what fits stays as it is.
TEST(LeastCapacity, IsOfEveryDevice) {
  const Trace trace = stream({{take, 1, 30, 0}, {take, 2, 50, 1}});
  EXPECT_EQ(least_capacity(trace, within(mebibytes(20))), mebibytes(50));
  EXPECT_EQ(least_capacity(trace, within(mebibytes(64))), mebibytes(64));
}

// Without fragmentation to the last block of 512 bytes.
TEST(LeastCapacity, OfTheIdealAllocatorIsThePeak) {
  Trace trace = stream({{take, 1, 3}, {take, 2, 5}});
  trace.memory_events.back().bytes = Bytes(5 * 512);
  EXPECT_EQ(least_capacity(trace, within(Bytes(1), ideal_policy)), mebibytes(3) + Bytes(5 * 512));
}

}  // namespace
}  // namespace spillway::scenario
