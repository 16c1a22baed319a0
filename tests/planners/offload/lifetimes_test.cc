#include <gtest/gtest.h>

#include <map>
#include <string>

#include "planners/offload/lifetimes.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

LoadedScenario gpt2_large() {
  return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-large", "sequence": 1024, "micro_batch": 4}, "hardware": {"profile": "h100-80gb-1gpu"}})",
                             "test", ""));
}

OffloadSettings to(Tier tier) {
  OffloadSettings settings;
  settings.tier = tier;
  return settings;
}

TEST(IdleIntervals, LieBetweenUsesAndPairUpAroundTheStep) {
  const LoadedScenario loaded = gpt2_large();
  const Result keep = run(loaded);
  const auto intervals = idle_intervals(loaded.trace, keep.op_start, keep.op_end, Bytes(1 << 20));
  std::map<std::uint32_t, int> before, after;
  for (const IdleInterval& interval : intervals) {
    EXPECT_LE(interval.begin, interval.end);
    if (interval.leave_after == OpId::none) ++before[interval.storage];
    if (interval.back_before == OpId::none) ++after[interval.storage];
    if (interval.leave_after != OpId::none && interval.back_before != OpId::none) {
      EXPECT_LT(interval.leave_after, interval.back_before);
    }
    if (interval.last_write != OpId::none) {
      EXPECT_LE(interval.last_write, interval.leave_after);
    }
  }
  EXPECT_EQ(before, after);
  // Every weight and optimizer tensor of at least 1 MiB lives beyond the step: 12 d^2 values a layer in four tensors,
  // the tied embedding; two moments and a master copy each.
  EXPECT_GE(before.size(), 36U * 4 * 4);
}

// Where memory is short, lifetimes fit and are faster than streaming all model state, to drives and to host memory.
TEST(Lifetimes, BeatStreamingWhereMemoryIsShort) {
  LoadedScenario loaded = gpt2_large();
  const Result keep = run(loaded);
  loaded.options.memory.capacity = keep.memory.peak_reserved * 3 / 4;
  for (const Tier tier : {Tier::drive, Tier::host}) {
    const OffloadOutcome lifetimes =
        run_lifetimes(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), to(tier));
    const OffloadOutcome stream = run_streaming(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), to(tier));
    EXPECT_TRUE(lifetimes.result.fits());
    EXPECT_TRUE(stream.result.fits());
    EXPECT_LT(lifetimes.result.step_time, stream.result.step_time);
    EXPECT_LT(lifetimes.moved.stored, stream.moved.stored);
    // A step that streams its state waits for its tier, and for nothing that has no name.
    EXPECT_EQ(stream.result.binding, tier == Tier::drive ? Binding::storage : Binding::pcie);
    EXPECT_EQ(stream.result.breakdown[static_cast<std::size_t>(Binding::idle)], Picos(0));
  }
}

TEST(Lifetimes, MoveNothingWhereEverythingFits) {
  const LoadedScenario loaded = gpt2_large();
  const OffloadOutcome outcome =
      run_lifetimes(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), to(Tier::drive));
  EXPECT_EQ(outcome.moved.stored, Bytes(0));
  EXPECT_EQ(outcome.result.step_time, run(loaded).step_time);
}

}  // namespace
}  // namespace spillway::scenario
