// What a step holds, under a limit and without: verdicts and peaks by the allocator, or by its requests alone.
#include "sim/replay/memory_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/peak_owners.h"
#include "tests/sim/replay/request_stream.h"

namespace spillway::sim {
namespace {

using namespace test;

// Where a step fits by what the allocator gives back, its peaks and its curve are those of the run that does.
TEST(MemoryReplay, ShowsTheRunThatGivesSegmentsBack) {
  const Trace trace = stream({{take, 1, 30}, {give, 1, 30}, {take, 2, 60}});
  const std::vector<Picos> unknown(trace.memory_events.size(), Picos(0));
  MemoryReplay replay(trace, within(mebibytes(64)));
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
    options.detail = Detail::clock;
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
    MemoryReplay replay(trace, within(capacity));
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

// What the owners of a peak sum to is checked in every replay; here against a walk over the requests alone.
std::int64_t most_held(const Trace& trace, std::int16_t device, const std::map<TensorId, Bytes>& sizes = {}) {
  std::map<std::uint64_t, std::int64_t> live;
  std::int64_t held = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device) continue;
    if (event.action == take) {
      const auto other = sizes.find(event.tensor);
      held += live[event.address.count()] = (other == sizes.end() ? event.bytes : other->second).count();
    } else if (event.action == give) {
      held -= std::exchange(live[event.address.count()], 0);
    }
    most = std::max(most, held);
  }
  return most;
}

MemoryResult memory_of(const Trace& trace, const MemoryReplayOptions& options) {
  return MemoryReplay(trace, options).result(std::vector<Picos>(trace.memory_events.size(), Picos(0)));
}

TEST(MemoryReplay, OwnersAreAllOfThePeak) {
  Random random(49);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    Trace trace = random_stream(random, i % 2 == 1);
    for (MemoryEvent& event : trace.memory_events) event.device = static_cast<std::int16_t>(event.address.count() % 3);
    for (const std::string_view allocator : {torch_policy, expandable_policy, ideal_policy, gmlake_policy})
      for (std::int16_t device = 0; device < 3; ++device) {
        MemoryReplayOptions options = within(Bytes(0), allocator);
        options.device = device;
        const MemoryResult memory = memory_of(trace, options);
        EXPECT_EQ(sum_of(memory.owners), memory.peak_allocated);
        if (allocator == ideal_policy) {
          EXPECT_EQ(memory.peak_allocated.count(), most_held(trace, device));
        }
      }
  }
}

// Blocks from before a capture that go in it, a block that is given twice, one that is never: nothing is lost.
TEST(MemoryReplay, OwnersOfRoughCapturesAreAllOfThePeak) {
  Trace trace = stream({{give, 7, 30},
                        {take, 1, 30},
                        {take, 1, 20},
                        {give, 9, 5},
                        {take, 2, 3},
                        {give, 1, 20},
                        {give, 1, 20},
                        {take, 3, 25},
                        {take, 4, 1}});
  trace.memory_size_is_requested = true;
  for (MemoryEvent& event : trace.memory_events) event.bytes += Bytes(100);  // blocks are rounded
  for (const std::string_view allocator : {torch_policy, ideal_policy}) {
    const MemoryResult memory = memory_of(trace, within(Bytes(0), allocator));
    EXPECT_GT(memory.peak_allocated, mebibytes(30));
    EXPECT_EQ(sum_of(memory.owners), memory.peak_allocated);
  }
}

// A step of tensors, before it the same with other sizes, and an evaluation.
struct StepWithHistory {
  StepWithHistory() {
    trace = stream({{take, 1, 100}, {take, 2, 10}, {take, 3, 20}, {give, 3, 20}, {give, 2, 10}});
    trace.memory_size_is_requested = true;
    const OpId call = trace.append_op({});
    for (const TensorRole role : {TensorRole::weight, TensorRole::activation, TensorRole::temporary}) {
      trace.tensors.name.push_back({});
      trace.tensors.bytes.emplace_back();
      trace.tensors.storage.push_back(static_cast<std::uint32_t>(trace.tensors.storage.size()));
      trace.tensors.role.push_back(role);
      trace.tensors.dtype.push_back({});
    }
    for (MemoryEvent& event : trace.memory_events) {
      event.tensor = TensorId(static_cast<std::uint32_t>(event.address.count() - 1));
      if (event.address != Addr(1)) event.anchor = call;
      event.stream = trace.lane({LaneKind::stream, 0, 0, 7});
    }
  }
  void before(std::uint32_t step, std::uint32_t tensor, std::int64_t mib) {
    trace.start_up.push_back(
        {.bytes = mebibytes(mib), .block = step, .allocates = false, .late = true, .tensor = TensorId(tensor)});
  }
  void evaluate(std::int64_t mib) {
    for (const bool allocates : {true, false})
      trace.start_up.push_back({.bytes = mebibytes(mib),
                                .allocates = allocates,
                                .late = true,
                                .stream = trace.memory_events.front().stream});
  }
  [[nodiscard]] Bytes owned(std::string_view name) const {
    for (const PeakOwner& owner : memory_of(trace, within(Bytes(0))).owners)
      if (owner.name == name) return owner.bytes;
    return Bytes(0);
  }
  Trace trace;
};

TEST(MemoryReplay, OwnersOfAPeakBeforeTheStepAreOfThen) {
  StepWithHistory step;
  EXPECT_EQ(memory_of(step.trace, within(Bytes(0))).peak_allocated, mebibytes(130));
  step.before(0, 1, 60);
  step.before(1, 1, 12);
  step.before(1, 2, 50);
  const MemoryResult memory = memory_of(step.trace, within(Bytes(0)));
  EXPECT_EQ(memory.peak_allocated, mebibytes(180));  // 100 + 60 + 20
  EXPECT_EQ(memory.peak_allocated.count(), most_held(step.trace, 0, {{TensorId(1), mebibytes(60)}}));
  EXPECT_EQ(step.owned("weight"), mebibytes(100));
  EXPECT_EQ(step.owned("activation"), mebibytes(60));
  EXPECT_EQ(step.owned("temporary"), mebibytes(20));
  EXPECT_NE(memory.explanation.find("before the step"), std::string::npos);

  step.evaluate(200);
  EXPECT_EQ(memory_of(step.trace, within(Bytes(0))).peak_allocated, mebibytes(300));
  EXPECT_EQ(step.owned("an evaluation before the step"), mebibytes(200));
  EXPECT_EQ(step.owned("weight"), mebibytes(100));
}

// Who holds what where memory runs out in a step before.
TEST(MemoryReplay, AStepBeforeMayRunOut) {
  StepWithHistory step;
  step.before(0, 1, 60);
  const MemoryResult memory = memory_of(step.trace, within(mebibytes(170)));
  EXPECT_TRUE(memory.out_of_memory);
  EXPECT_NE(memory.explanation.find("0.10 GiB weight"), std::string::npos) << memory.explanation;
  EXPECT_NE(memory.explanation.find("0.06 GiB activation"), std::string::npos) << memory.explanation;
}

}  // namespace
}  // namespace spillway::sim
