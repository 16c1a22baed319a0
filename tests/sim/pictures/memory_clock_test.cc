#include "sim/pictures/memory_clock.h"

#include <gtest/gtest.h>

#include "sim/pictures/memory_picture.h"
#include "sim/replay/replay.h"

namespace spillway::sim {
namespace {

// One host thread, 1 us a call, and one stream on which the kernels take 10 us each: the host is done long before.
struct RunsAhead {
  RunsAhead() {
    const LaneId host = trace.lane({.kind = LaneKind::host_thread});
    stream = trace.lane({.kind = LaneKind::stream, .device = 0});
    for (int i = 0; i < 3; ++i) {
      calls.push_back(trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                                       .kind = OpKind::launch,
                                       .lane = host,
                                       .start = microseconds(i),
                                       .duration = microseconds(1)}));
      trace.append_op({.name = trace.strings.intern("kernel"),
                       .kind = OpKind::kernel,
                       .lane = stream,
                       .duration = microseconds(10),
                       .launched_by = calls.back()});
    }
    trace.set(Capability::times);
    HardwareProfile hardware;
    hardware.gpu.memory_bandwidth.value = rate_from_bytes_per_second(1e12);
    result = replay(trace, hardware, {});
  }
  void event(MemoryAction action, OpId anchor) {
    trace.memory_events.push_back(
        {.address = Addr(4096), .bytes = Bytes(512), .anchor = anchor, .action = action, .stream = stream});
  }
  [[nodiscard]] std::vector<std::int64_t> places(MemoryClock clock) const {
    std::vector<std::int64_t> found = event_places(trace, {result.op_start, result.op_end, {}}, clock);
    if (clock != MemoryClock::program)
      for (std::int64_t& place : found) place /= microseconds(1).count();
    return found;
  }

  Trace trace;
  LaneId stream{};
  std::vector<OpId> calls;
  Result result;
};

// Kernels run [1, 11), [11, 21), [21, 31): what the second takes is there from 11, what it leaves goes at 21.
TEST(MemoryClock, EventsLieBesideTheWorkTheyAreFor) {
  RunsAhead step;
  step.event(MemoryAction::allocate, OpId::none);
  step.event(MemoryAction::allocate, step.calls[0]);
  step.event(MemoryAction::free_completed, step.calls[1]);
  step.event(MemoryAction::free_completed, step.calls[2]);
  EXPECT_EQ(step.places(MemoryClock::gpu), (std::vector<std::int64_t>{0, 11, 21, 31}));
  EXPECT_EQ(step.places(MemoryClock::host), (std::vector<std::int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(step.places(MemoryClock::program), (std::vector<std::int64_t>{0, 2, 4, 6}));
}

TEST(MemoryClock, TheAllocatorsOrderIsKept) {
  RunsAhead step;
  step.event(MemoryAction::free_completed, step.calls[2]);  // at 31
  step.event(MemoryAction::allocate, step.calls[0]);        // by itself at 11
  EXPECT_EQ(step.places(MemoryClock::gpu), (std::vector<std::int64_t>{31, 31}));
}

// An event that waits for the end of a transfer isn't before it.
TEST(MemoryClock, GatedFreesWait) {
  RunsAhead step;
  step.event(MemoryAction::free_completed, step.calls[0]);
  const std::vector<OpId> gate = {OpId(5)};
  EXPECT_EQ(event_places(step.trace, {step.result.op_start, step.result.op_end, gate}, MemoryClock::gpu).front(),
            microseconds(31).count());
}

TEST(OwnersAtPeak, AreThoseWhenMostIsHeld) {
  MemoryPicture picture;
  picture.kinds = {"weight", "activation"};
  picture.changes = {{0, 0, 10}, {5, 1, 30}, {10, 1, 7}, {20, 1, -30}, {20, 0, 20}};
  EXPECT_EQ(owners_at_peak(picture), (std::vector<std::int64_t>{10, 37}));
}

// The chain has no gaps and no overlaps, and its parts are the breakdown.
TEST(CriticalPath, StepsFollowEachOther) {
  const RunsAhead step;
  Picos reached{};
  for (const PathStep& piece : step.result.path) {
    EXPECT_EQ(piece.begin, reached);
    EXPECT_GT(piece.end, piece.begin);
    reached = piece.end;
  }
  EXPECT_EQ(reached, step.result.replayed);
  ASSERT_EQ(step.result.path.size(), 4U);
  EXPECT_EQ(step.result.path.front().op, step.calls[0]);
  EXPECT_EQ(step.result.path.back().op, OpId(5));
}

}  // namespace
}  // namespace spillway::sim
