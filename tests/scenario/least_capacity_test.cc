// What a step is short of: found with the allocator under the limit, not from what it reserves without one.
#include "scenario/least_capacity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/sim/engine/engine_random.h"

namespace spillway::scenario {
namespace {

constexpr Bytes mebibytes(std::int64_t n) { return Bytes(n << 20); }

struct Request {
  MemoryAction action;
  std::uint64_t address;
  std::int64_t mebibytes;
  std::int16_t device = 0;
};

Trace stream(const std::vector<Request>& requests) {
  Trace trace;
  for (const Request& request : requests) {
    MemoryEvent& added = trace.memory_events.emplace_back();
    added.action = request.action;
    added.address = Addr(request.address);
    added.bytes = mebibytes(request.mebibytes);
    added.device = request.device;
  }
  trace.set(Capability::memory);
  return trace;
}

MemoryReplayOptions within(Bytes capacity, std::string_view allocator = torch_policy) {
  MemoryReplayOptions options;
  options.allocator = allocator;
  options.capacity = capacity;
  return options;
}

constexpr auto take = MemoryAction::allocate;
constexpr auto give = MemoryAction::free_requested;

// 30 MiB, given back, then 60 MiB: without a limit the cache keeps the first segment, 30 + 60 = 90 MiB reserved. Under
// a limit it goes back to the driver: 60 MiB do.
TEST(LeastCapacity, CountsOnTheCacheGivingSegmentsBack) {
  const Trace trace = stream({{take, 1, 30}, {give, 1, 30}, {take, 2, 60}});
  const MemoryReplayOptions options = within(mebibytes(20));
  ASSERT_EQ(MemoryReplay(trace, options).peaks().front().reserved, mebibytes(90));
  EXPECT_EQ(least_capacity(trace, options), mebibytes(60));
}

// Where a step fits by what the allocator gives back, its peaks and its curve are those of the run that does.
TEST(MemoryReplay, ShowsTheRunThatGivesSegmentsBack) {
  const Trace trace = stream({{take, 1, 30}, {give, 1, 30}, {take, 2, 60}});
  const std::vector<Picos> unknown(trace.memory_events.size(), Picos(0));
  const MemoryReplay replay(trace, within(mebibytes(64)));
  const MemoryResult memory = replay.result(unknown);
  EXPECT_TRUE(memory.gives_back);
  EXPECT_FALSE(memory.out_of_memory);
  EXPECT_EQ(memory.peak_reserved, mebibytes(60));
  EXPECT_EQ(replay.peaks().front().reserved, mebibytes(60));
  const auto most = std::max_element(memory.timeline.begin(), memory.timeline.end(),
                                     [](const auto& a, const auto& b) { return a.reserved < b.reserved; });
  ASSERT_NE(most, memory.timeline.end());
  EXPECT_EQ(most->reserved, mebibytes(60));
  EXPECT_FALSE(MemoryReplay(trace, within(mebibytes(90))).result(unknown).gives_back);
}

// Blocks of 1 to 40 MiB that come and go; late: some are free only some requests after that was asked for.
Trace random_stream(sim::test::Random& random, bool late) {
  std::vector<Request> live, pending, requests;
  const auto take_any = [&random](std::vector<Request>& from) {
    std::swap(from[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(from.size()) - 1))],
              from.back());
    const Request chosen = from.back();
    from.pop_back();
    return chosen;
  };
  const auto completed = [](Request request) {
    request.action = MemoryAction::free_completed;
    return request;
  };
  for (std::uint64_t i = 1; i <= 120; ++i) {
    if (live.size() < 4 || random.between(0, 9) < 6) {
      live.push_back({take, i, random.between(1, 40)});
      requests.push_back(live.back());
      continue;
    }
    Request given = take_any(live);
    given.action = give;
    requests.push_back(given);
    if (late && random.between(0, 2) == 0)
      pending.push_back(given);
    else if (late)
      requests.push_back(completed(given));
    if (pending.size() > 3) requests.push_back(completed(take_any(pending)));
  }
  return stream(requests);
}

// Exact to the torch allocator's 2 MiB: the stream runs within it, and not within 2 MiB less.
TEST(LeastCapacity, IsTheEdge) {
  const Trace trace = stream({{take, 1, 11}, {take, 2, 25}, {give, 1, 11}, {take, 3, 7}, {take, 4, 40}, {give, 2, 25}});
  MemoryReplayOptions options = within(mebibytes(1));
  options.capacity = least_capacity(trace, options);
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::fits);
  options.capacity = options.capacity - mebibytes(2);
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::does_not_fit);
}

// However many limits are left out as alike; known peaks are not found again.
TEST(LeastCapacity, IsTheEdgeOfRandomStreams) {
  sim::test::Random random(31);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const Trace trace = random_stream(random, i % 2 == 1);
    MemoryReplayOptions options = within(mebibytes(20));
    DevicePeaks peaks = MemoryReplay(trace, options).peaks().front();
    const Bytes least = least_capacity(trace, options);
    EXPECT_EQ(least_capacity(trace, options, peaks), least);
    options.capacity = least;
    EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::fits);
    options.capacity = least - mebibytes(2);
    EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::does_not_fit);
  }
}

// Under every limit below the least one that was refused.
TEST(LeastCapacity, LimitsThatARunMeetsAlikeAreOne) {
  sim::test::Random random(32);
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

// What surely doesn't fit is known without the allocator, whoever else still uses a block that is given back.
TEST(MemoryReplay, VerdictsWithoutPeaksAreThoseWithThem) {
  sim::test::Random random(33);
  int skipped = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const Trace trace = random_stream(random, i % 2 == 1);
    MemoryReplayOptions options = within(mebibytes(random.between(100, 900)));
    const DevicePeaks whole = MemoryReplay(trace, options).peaks().front();
    options.peaks = false;
    const DevicePeaks brief = MemoryReplay(trace, options).peaks().front();
    EXPECT_EQ(brief.verdict, whole.verdict);
    EXPECT_LE(brief.allocated, whole.allocated);
    skipped += brief.allocated < whole.allocated ? 1 : 0;
  }
  EXPECT_GT(skipped, 10);
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
