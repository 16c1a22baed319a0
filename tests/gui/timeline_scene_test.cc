#include "gui/timeline_scene.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

// Two streams of two ranks; kernels "gemm" and "norm" of two micro-batches.
struct Example {
  Trace trace;
  Result result;
  Example() {
    trace.rank_count = 2;
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      const LaneId lane = trace.lane(
          {.kind = LaneKind::stream, .rank = rank, .device = 0, .number = 7, .name = trace.strings.intern("stream 7")});
      add(lane, "gemm", Phase::forward, 0, 0, 100);
      add(lane, "norm", Phase::forward, 0, 100, 150);
      add(lane, "gemm", Phase::forward, 1, 150, 250);
      add(lane, "gemm", Phase::backward, 0, 300, 500);
    }
    result.replayed = Picos(500);
  }
  void add(LaneId lane, const char* name, Phase phase, std::uint16_t batch, std::int64_t start, std::int64_t end) {
    trace.append_op({.name = trace.strings.intern(name),
                     .kind = OpKind::kernel,
                     .phase = phase,
                     .lane = lane,
                     .micro_batch = batch,
                     .duration = Picos(end - start),
                     .bytes = Bytes(10)});
    result.op_start.push_back(Picos(start));
    result.op_end.push_back(Picos(end));
  }
};

TEST(TimelineScene, OneLanePerStreamInOrder) {
  const Example example;
  const TimelineScene scene = timeline_scene(example.trace, example.result);
  ASSERT_EQ(scene.lanes.size(), 2U);
  EXPECT_EQ(scene.lanes[0].name, "rank 0 stream 7");
  EXPECT_EQ(scene.lanes[1].name, "rank 1 stream 7");
  EXPECT_EQ(scene.lanes[0].spans.size(), 4U);
  EXPECT_EQ(scene.whole, (TimeRange{0, 500}));
}

// Two works of one lane at the same time: the second is in a row below.
TEST(TimelineScene, OverlappingWorkGetsARowOfItsOwn) {
  Example example;
  example.add(static_cast<LaneId>(0), "copy", Phase::unknown, 0, 120, 400);
  const TimelineScene scene = timeline_scene(example.trace, example.result);
  ASSERT_EQ(scene.lanes.size(), 3U);
  EXPECT_EQ(scene.lanes[1].name, "rank 0 stream 7 (2)");
}

// Passes: neighbouring work of one micro-batch and phase.
TEST(TimelineScene, PipelineHasAPassPerMicroBatchAndPhase) {
  const Example example;
  const TimelineScene scene = pipeline_scene(example.trace, example.result);
  ASSERT_EQ(scene.lanes.size(), 2U);
  ASSERT_EQ(scene.lanes[0].spans.size(), 3U);
  EXPECT_EQ(scene.passes[scene.lanes[0].spans.id(0)].name, "0 forward");
  EXPECT_EQ(scene.passes[scene.lanes[0].spans.id(1)].name, "1 forward");
  EXPECT_EQ(scene.passes[scene.lanes[0].spans.id(2)].name, "0 backward");
  EXPECT_EQ(scene.lanes[0].spans.begin(0), 0);
  EXPECT_EQ(scene.lanes[0].spans.end(0), 150);
}

// Parts outside of the range don't count: 50 of the first gemm, all of the norm, 10 of the second gemm.
TEST(TimelineScene, RangeIsSummedByName) {
  const Example example;
  const TimelineScene scene = timeline_scene(example.trace, example.result);
  const auto rows = work_in(scene, example.trace, {50, 160});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].name, "gemm");
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_EQ(rows[0].total, 60);
  EXPECT_EQ(rows[0].longest, 50);
  EXPECT_EQ(rows[0].bytes, 20);
  EXPECT_EQ(rows[2].name, "norm");
  EXPECT_EQ(rows[2].total, 50);
}

TEST(TimelineScene, FindsByPartOfAName) {
  const Example example;
  EXPECT_EQ(find_op(example.trace, "NOR", std::nullopt), static_cast<OpId>(1));
  EXPECT_EQ(find_op(example.trace, "norm", static_cast<OpId>(1)), static_cast<OpId>(5));
  EXPECT_EQ(find_op(example.trace, "norm", static_cast<OpId>(5)), static_cast<OpId>(1));
  EXPECT_EQ(find_op(example.trace, "nothing", std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace spillway::gui
