// What a step holds, under a limit and without: verdicts and peaks by the allocator, or by its requests alone.
#include "sim/replay/memory_replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/replay/request_stream.h"

namespace spillway::sim {
namespace {

using namespace test;

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

// What surely doesn't fit is known without the allocator, whoever else still uses a block that is given back.
TEST(MemoryReplay, VerdictsWithoutPeaksAreThoseWithThem) {
  Random random(33);
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

// Rows that a reader left out, and sizes that no allocator can be asked for: of each device.
TEST(MemoryReplay, WhatWasLeftOutIsInDoubt) {
  Trace trace = stream({{take, 1, 30}});
  const std::vector<Picos> unknown(trace.memory_events.size() + 1, Picos(0));
  const auto verdicts = [&](Bytes capacity) {
    const MemoryReplay replay(trace, within(capacity));
    return std::pair(replay.result(unknown).verdict(), replay.peaks().front().verdict);
  };
  EXPECT_EQ(verdicts(mebibytes(64)), std::pair(Verdict::fits, Verdict::fits));
  trace.note("negative_duration", "", "of work", true);
  EXPECT_EQ(verdicts(mebibytes(64)), std::pair(Verdict::fits, Verdict::fits));
  trace.note("bad_block", "", "left out", true);
  EXPECT_EQ(verdicts(mebibytes(64)), std::pair(Verdict::unknown, Verdict::unknown));
  EXPECT_EQ(verdicts(mebibytes(8)), std::pair(Verdict::does_not_fit, Verdict::does_not_fit));
  trace.findings.clear();
  MemoryEvent endless = trace.memory_events.back();
  endless.bytes = Bytes(std::int64_t{1} << 60);
  trace.memory_events.push_back(endless);
  EXPECT_EQ(verdicts(mebibytes(64)), std::pair(Verdict::unknown, Verdict::unknown));
}

}  // namespace
}  // namespace spillway::sim
