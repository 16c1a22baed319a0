// What a step is short of: found with the allocator under the limit, not from what it reserves without one.
#include "sim/replay/least_capacity.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::sim {
namespace {

constexpr Bytes mebibytes(std::int64_t n) { return Bytes(n << 20); }

struct Request {
  MemoryAction action;
  std::uint64_t address;
  std::int64_t mebibytes;
  std::int16_t device = 0;
};

Trace stream(std::initializer_list<Request> requests) {
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

// Exact to the torch allocator's 2 MiB: the stream runs within it, and not within 2 MiB less.
TEST(LeastCapacity, IsTheEdge) {
  const Trace trace = stream({{take, 1, 11}, {take, 2, 25}, {give, 1, 11}, {take, 3, 7}, {take, 4, 40}, {give, 2, 25}});
  MemoryReplayOptions options = within(mebibytes(1));
  options.capacity = least_capacity(trace, options);
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::fits);
  options.capacity = options.capacity - mebibytes(2);
  EXPECT_EQ(MemoryReplay(trace, options).peaks().front().verdict, Verdict::does_not_fit);
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
}  // namespace spillway::sim
