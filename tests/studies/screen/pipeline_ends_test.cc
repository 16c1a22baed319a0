#include "studies/screen/pipeline_ends.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/pipeline/named_schedules.h"
#include "planners/pipeline/pipeline_executor.h"

namespace spillway::studies {
namespace {

constexpr Picos us(std::int64_t count) { return Picos(count * 1'000'000); }

// Every pass alike: f + b of a stage in a pass of each of its chunks.
PipelineWork even_work(const std::string& schedule, std::int64_t p, std::int64_t v, std::int64_t m, Picos f, Picos b,
                       Picos message) {
  PipelineWork work{.schedule = schedule, .stages = p, .chunks = v, .micro_batches = m, .passes = {}, .messages = {}};
  const auto positions = static_cast<std::size_t>(p * v);
  work.passes.assign(positions, {{.first = {f}}, {.first = {b}}});
  work.messages.assign(positions - 1, message);
  return work;
}

Picos end_of(const PipelineWork& work) { return PipelineRuns().ends(work).end; }

// (m + (p - 1) / v) (f + b), Narayanan et al. 2021, section 2.2, f and b of all chunks of a stage.
TEST(PipelineEnds, FreeMessagesGiveThePublishedBubble) {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {8, 16, 96}) {
      EXPECT_EQ(end_of(even_work("1f1b", p, 1, m, us(10), us(20), us(0))), us(30) * (m + p - 1));
      EXPECT_EQ(end_of(even_work("gpipe", p, 1, m, us(10), us(20), us(0))), us(30) * (m + p - 1));
      EXPECT_EQ(end_of(even_work("interleaved", p, 2, m, us(10), us(20), us(0))), us(30) * (2 * m + p - 1));
    }
}

// Another program that runs schedules, which knows no lanes for messages: without any the two agree to the tick.
TEST(PipelineEnds, UnevenPassesTakeWhatThePlannersExecutorSays) {
  for (const std::int64_t v : {1, 3})
    for (const std::int64_t m : {4, 12, 64}) {
      const std::int64_t p = 4;
      PipelineWork work = even_work(v == 1 ? "1f1b" : "interleaved", p, v, m, us(0), us(0), us(0));
      StageTimes times;
      for (std::size_t i = 0; i < work.passes.size(); ++i) {
        const auto f = static_cast<std::int64_t>(7 + 5 * i % 11), b = static_cast<std::int64_t>(13 + 7 * i % 17);
        work.passes[i] = {{.first = {us(f)}}, {.first = {us(b)}}};
        times.positions.push_back({.forward = f, .input_gradient = b});
      }
      const PipelinePlan plan = build_schedule(work.schedule, {.devices = p, .micro_batches = m, .chunks = v});
      const PipelineTimeline timeline = execute_plan(plan, times);
      const PipelineEnds ends = PipelineRuns().ends(work);
      const double whole = to_seconds(us(timeline.makespan));
      // Beyond four groups of micro-batches the pace is taken for steady.
      EXPECT_NEAR(to_seconds(ends.end) / whole, 1, m > 16 ? 0.002 : 1e-12) << "v " << v << " m " << m;
    }
}

// One stage's host waits for what it sends: each message holds up the sender as well.
TEST(PipelineEnds, WaitingForSendsPutsMessagesIntoThePasses) {
  PipelineWork work = even_work("1f1b", 2, 1, 8, us(10), us(20), us(6));
  const Picos free = end_of(work);
  work.waits = true;
  const Picos waits = end_of(work);
  EXPECT_GT(waits, free);
  // Stage 0 in steady state: the forward, its message down, the way of the last stage's backward up: never longer than
  // all messages one after another.
  EXPECT_LE(waits, us(30) * 9 + us(12) * 9);
}

// Short layers and a long head: the device waits for the host in the layers and catches up in the head.
TEST(PipelineEnds, TheSlowerOfHostAndDeviceSetsThePaceOfEachPart) {
  const PipelineWork::Turn forward{.first = {us(2), us(10)}, .second = {us(30), us(1)}, .rest = us(3)};
  EXPECT_EQ(forward.end(us(100), us(100)), us(100 + 10 + 30 + 3));
  const PipelineWork::Turn backward{.first = {us(30), us(1)}, .second = {us(2), us(10)}};
  EXPECT_EQ(backward.end(us(100), us(100)), us(100 + 30 + 2));
  EXPECT_EQ(backward.end(us(100), us(130)), us(130 + 1 + 10));
}

// Asked again, in any order and from a fresh object, the answer is the same.
TEST(PipelineEnds, KeepsWhatItHasRun) {
  PipelineRuns runs;
  const PipelineWork one = even_work("interleaved", 4, 2, 64, us(10), us(20), us(3));
  PipelineWork other = one;
  other.messages.back() = us(40);
  const Picos first = runs.ends(one).end;
  EXPECT_NE(runs.ends(other).end, first);
  EXPECT_EQ(runs.ends(one).end, first);
  EXPECT_EQ(end_of(one), first);
}

}  // namespace
}  // namespace spillway::studies
