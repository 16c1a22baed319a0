// A folded step against the whole one written out and run: two stages under 1F1B, with transfers between them.
#include "sim/replay/periodic_run.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/engine/executor.h"
#include "sim/engine/fingerprint.h"
#include "tests/sim/engine/engine_random.h"

namespace spillway::sim {
namespace {

constexpr std::int64_t apart = traces::micro_batches_apart + 1;  // the first micro-batch in a period

struct Times {
  Picos forward[2]{}, backward[2]{}, transfer{}, update{};
  std::size_t depth = 0;  // none
  Picos wait{};
};

// Micro-batches of two pipeline stages, on a lane each, and an update of each stage at the end. Stage 0 runs a
// forward ahead of its backwards. An op is an activity. With a depth, stage 1 begins a micro-batch only `wait` after it
// has ended the one so many before: where that holds it up, it takes turns of so many.
struct Step {
  Trace trace;
  ActivityGraph graph;
  StepFold fold;
  std::vector<ActivityId> forwards[2], backwards[2];

  Step(const Times& times, std::int64_t micro_batches) {
    const TrackId lanes[] = {graph.add_lane(), graph.add_lane()};
    for (std::uint16_t r = 0; r < 2; ++r) trace.lanes.push_back({.rank = r, .device = 0});
    const auto run = [&](std::uint16_t rank, Picos time, std::int64_t micro_batch) {
      trace.append_op({.lane = LaneId{rank}, .micro_batch = static_cast<std::uint16_t>(micro_batch)});
      return graph.add_delay(lanes[rank], time);
    };
    for (std::uint16_t r = 0; r < 2; ++r) {
      const std::int64_t ahead = r == 0 ? 1 : 0;
      StepFold::Rank& rank = fold.ranks.emplace_back();
      rank.ops = 2;
      for (std::int64_t i = 0; i < micro_batches + ahead; ++i) {
        if (i == apart + ahead) rank.op = static_cast<std::uint32_t>(trace.ops.size());
        if (i >= apart + ahead && i < micro_batches) ++rank.periods;
        if (i < micro_batches) forwards[r].push_back(run(r, times.forward[r], i));
        if (i >= ahead) backwards[r].push_back(run(r, times.backward[r], i - ahead));
      }
      run(r, times.update, no_index16);
    }
    for (std::size_t i = 0; i < forwards[0].size(); ++i) {
      graph.add_edge(forwards[0][i], forwards[1][i], EdgeType::end_to_start, times.transfer);
      graph.add_edge(backwards[1][i], backwards[0][i], EdgeType::end_to_start, times.transfer);
      if (times.depth > 0 && i + times.depth < forwards[1].size())
        graph.add_edge(backwards[1][i], forwards[1][i + times.depth], EdgeType::end_to_start, times.wait);
    }
  }
};

// A run of it, and of what it says of `times` more micro-batches.
struct Folded {
  Step step;
  std::vector<OpId> op;
  Executor<> executor;

  Folded(Step made, std::int64_t times) : step(std::move(made)), executor(finished(step.graph)) {
    step.fold.times = times;
    for (std::uint32_t a = 0; a < step.trace.ops.size(); ++a) op.push_back(OpId{a});
    executor.run();
  }
  static ActivityGraph finished(ActivityGraph graph) {
    graph.finish();
    return graph;
  }
  [[nodiscard]] PeriodicRun run() const {
    return {step.trace, step.fold, executor.graph(), op, executor.starts(), executor.ends()};
  }
  [[nodiscard]] std::string refusal() const {
    const std::optional<FoldRefusal> refused = run().refusal();
    return refused ? refused->why : "";
  }
};

// What the whole of a folded step comes to, written out and run.
void expect_whole(const Folded& folded, const Times& times, std::int64_t micro_batches) {
  const PeriodicRun run = folded.run();
  Executor<> whole(Folded::finished(Step(times, micro_batches).graph));
  whole.run();
  EXPECT_EQ(run.fingerprint(), fingerprint(whole.lane_digests())) << micro_batches;
  EXPECT_EQ(folded.executor.now() + run.longer(), whole.now()) << micro_batches;
}

constexpr Times even{{Picos(100), Picos(100)}, {Picos(200), Picos(200)}, Picos(10), Picos(50)};

TEST(PeriodicRun, IsTheWholeStep) {
  test::Random random(7);
  int told = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto some = [&] { return Picos(random.between(1, 1'000)); };
    const Times times{{some(), some()}, {some(), some()}, some(), some()};
    constexpr std::int64_t shown = 48;
    const std::int64_t more = 12 * random.between(1, 25);  // any number of turns goes into it
    const Folded folded(Step(times, shown), more);
    if (!folded.refusal().empty()) continue;
    ++told;
    expect_whole(folded, times, shown + more);
  }
  EXPECT_GT(told, 150);
}

// Steady steps are folded, whatever their stages take: within the micro-batches shown they have come to be alike.
TEST(PeriodicRun, SteadyStepsAreFolded) {
  test::Random random(11);
  int refused = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const auto some = [&] { return Picos(random.between(100, 400)); };
    refused += Folded(Step({{some(), some()}, {some(), some()}, some(), some()}, 48), 16).refusal().empty() ? 0 : 1;
  }
  EXPECT_EQ(refused, 0);
}

TEST(PeriodicRun, ShiftsWhatComesAfterAndCountsWhatIsRepeated) {
  const Folded folded(Step(even, 48), 10);
  const PeriodicRun run = folded.run();
  EXPECT_EQ(10 % run.times(), 0) << "in turns of as many micro-batches";
  EXPECT_EQ(run.longer(), run.period() * run.times());
  std::int64_t ops = 0;
  for (const OpId op : folded.op) ops += run.runs_of(op);
  EXPECT_EQ(ops, static_cast<std::int64_t>(Step(even, 58).trace.ops.size()));
  EXPECT_EQ(run.shift_of(OpId{0}), Picos(0));
  EXPECT_EQ(run.shift_of(folded.op.back()), run.longer());
}

// Five to fourteen micro-batches after each other, then a wait for the first of them.
TEST(PeriodicRun, TakesTurns) {
  for (const std::size_t depth : {5, 7, 11, 14}) {
    Times times = even;
    times.depth = depth;
    times.wait = Picos(5'000);
    const auto turns = static_cast<std::int64_t>(depth);
    for (const std::int64_t rounds : {1, 2, 9}) {
      const Folded folded(Step(times, 64), rounds * turns);
      ASSERT_EQ(folded.refusal(), "") << depth;
      EXPECT_EQ(folded.run().times(), rounds) << depth;
      expect_whole(folded, times, 64 + rounds * turns);
    }
    const Folded uneven(Step(times, 64), 9 * turns + 1);
    const std::optional<FoldRefusal> refused = uneven.run().refusal();
    ASSERT_TRUE(refused) << "a part of a turn is left over";
    EXPECT_EQ(refused->turns, turns);
    EXPECT_EQ(refused->more, 0);
  }
}

// Of turns that are seen, but too few times to tell of more: with those it asks for it does.
TEST(PeriodicRun, SaysHowManyMorePeriodsWouldShowItsTurns) {
  Times times = even;
  times.depth = 14;
  times.wait = Picos(5'000);
  std::int64_t shown = 34, tries = 0;
  for (; tries < 5; ++tries) {
    const Folded folded(Step(times, shown), 28);
    const std::optional<FoldRefusal> refused = folded.run().refusal();
    if (!refused) break;
    ASSERT_EQ(refused->turns, 14);
    ASSERT_GT(refused->more, 0);
    shown += refused->more;
  }
  EXPECT_GE(tries, 1);
  ASSERT_LT(tries, 3);
  expect_whole(Folded(Step(times, shown), 28), times, shown + 28);
}

TEST(PeriodicRun, RefusesWhatItCannotTell) {
  EXPECT_EQ(Folded(Step(even, 48), 10).refusal(), "");
  EXPECT_EQ(Folded(Step(even, apart + 2), 10).refusal(), "periods do not become equal");
  Step uneven(even, 48);
  uneven.graph = {};  // as Step makes it, with micro-batches that take ever longer
  const TrackId lanes[] = {uneven.graph.add_lane(), uneven.graph.add_lane()};
  for (std::uint32_t a = 0; a < uneven.trace.ops.size(); ++a)
    uneven.graph.add_delay(lanes[static_cast<std::size_t>(uneven.trace.ops.lane[a])], Picos(100 + a));
  EXPECT_EQ(Folded(std::move(uneven), 10).refusal(), "periods do not become equal");
  Step released(even, 48);
  released.graph.set_release(released.backwards[0].back(), Picos(1));
  EXPECT_EQ(Folded(std::move(released), 10).refusal(), "something waits for the clock");
  // The last backward waits for a forward of long ago, which the repeated ones would as well.
  Step old(even, 48);
  old.graph.add_edge(old.forwards[0][apart], old.backwards[0].back());
  EXPECT_EQ(Folded(std::move(old), 10).refusal(), "something waits for what was before it was regular");
}

}  // namespace
}  // namespace spillway::sim
