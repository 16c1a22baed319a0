#include "traces/step_times.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::traces {
namespace {

// A step of `count` launches `pause` apart, each 2 us long, whose kernels start behind them and take `kernel`.
struct Steps {
  int count = 20;
  Picos pause = microseconds(10), kernel = microseconds(4), first{};
  int steps = 1;
  std::string odd = "k";  // the name of every tenth kernel

  Trace make() const {
    Trace trace;
    const LaneId host = trace.lane({.kind = LaneKind::host_thread}),
                 gpu = trace.lane({.kind = LaneKind::stream, .device = 0});
    std::vector<OpRow> works;
    for (int s = 0; s < steps; ++s) {
      const Picos begin = first + pause * std::int64_t{count + 2} * std::int64_t{s};
      trace.steps.push_back({.start = begin, .duration = pause * std::int64_t{count}});
      for (int k = 0; k < count; ++k) {
        const auto step = static_cast<std::uint16_t>(s);
        const OpId call = trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                                           .kind = OpKind::launch,
                                           .lane = host,
                                           .step = step,
                                           .start = begin + pause * std::int64_t{k},
                                           .duration = microseconds(2)});
        works.push_back({.name = trace.strings.intern(k % 10 == 9 ? odd : "k"),
                         .lane = gpu,
                         .step = step,
                         .start = begin + pause * std::int64_t{k} + microseconds(3),
                         .duration = kernel,
                         .launched_by = call});
      }
    }
    for (const OpRow& work : works) trace.append_op(work);
    trace.set(Capability::times);
    return trace;
  }
};

TEST(StepTimesTest, ALightCapturesTimesForAFullOnesOps) {
  Trace full = Steps{.pause = microseconds(30), .kernel = microseconds(9), .first = microseconds(1000)}.make();
  const OpId fifth{5};
  full.memory_events.push_back({.time = full.ops.start[5] + microseconds(1), .bytes = Bytes(512), .anchor = fifth});
  const Trace light = Steps{.steps = 3}.make();
  StepMatch match;
  const auto made = with_times_of(full, light, match);
  ASSERT_TRUE(made);
  EXPECT_EQ(match.matched, 40U);
  EXPECT_EQ(match.all, 40U);
  // The last of the light steps is the full one's.
  EXPECT_EQ(made->steps.front().start, light.steps.back().start);
  for (std::size_t k = 0; k < 20; ++k) {
    EXPECT_EQ(made->ops.start[k], light.ops.start[40 + k]);
    EXPECT_EQ(made->ops.duration[20 + k], microseconds(4));
  }
  // Half way through a call of 2 us as before.
  EXPECT_EQ(made->memory_events.front().time, made->ops.start[5] + microseconds(1));
}

TEST(StepTimesTest, ALightStepIsTakenAgainForEveryFullStepBehindIt) {
  const Trace full = Steps{.pause = microseconds(30), .steps = 3}.make(), light = Steps{}.make();
  StepMatch match;
  const auto made = with_times_of(full, light, match);
  ASSERT_TRUE(made);
  for (std::size_t s = 0; s < 3; ++s)
    EXPECT_EQ(made->ops.start[20 * s], microseconds(200) * static_cast<std::int64_t>(s));
}

TEST(StepTimesTest, WhatHasNoPartnerKeepsItsDuration) {
  const Trace full = Steps{.kernel = microseconds(9), .odd = "other"}.make(), light = Steps{}.make();
  StepMatch match;
  const auto made = with_times_of(full, light, match);
  ASSERT_TRUE(made);
  EXPECT_EQ(match.matched, 38U);
  EXPECT_EQ(made->ops.duration[20 + 9], microseconds(9));
  EXPECT_EQ(made->ops.duration[20 + 8], microseconds(4));
}

TEST(StepTimesTest, AnotherProgramIsNotTaken) {
  const Trace full = Steps{.count = 20}.make(), light = Steps{.count = 10}.make();
  StepMatch match;
  EXPECT_FALSE(with_times_of(full, light, match));
  EXPECT_EQ(match.matched, 20U);
}

}  // namespace
}  // namespace spillway::traces
