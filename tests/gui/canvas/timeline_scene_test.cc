#include "gui/canvas/timeline_scene.h"

#include <gtest/gtest.h>

#include "sim/pictures/timeline_lanes.h"

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

// A stage that waits in the middle of a pass shows two spans of it, and the wait between them.
TEST(TimelineScene, WaitsInsideAPassStayEmpty) {
  Example example;
  example.add(static_cast<LaneId>(0), "gemm", Phase::backward, 0, 600, 650);
  example.result.replayed = Picos(650);
  const TimelineScene scene = pipeline_scene(example.trace, example.result);
  const SpanLane& row = scene.lanes[0].spans;
  ASSERT_EQ(row.size(), 4U);
  EXPECT_EQ(row.end(2), 500);
  EXPECT_EQ(row.begin(3), 600);
  EXPECT_EQ(scene.passes[row.id(3)].name, "0 backward");
}

// Parts outside of the range don't count: 50 of the first gemm, all of the norm, 10 of the second gemm.
TEST(TimelineScene, RangeIsSummedByName) {
  const Example example;
  const TimelineScene scene = timeline_scene(example.trace, example.result);
  const auto rows = work_in(scene, example.trace, {50, 160}).rows();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].name, "gemm");
  EXPECT_EQ(rows[0].count, 2U);
  EXPECT_EQ(rows[0].total, 60);
  EXPECT_EQ(rows[0].longest, 50);
  EXPECT_EQ(rows[0].bytes, 20);
  EXPECT_EQ(rows[2].name, "norm");
  EXPECT_EQ(rows[2].total, 50);
}

// Calls recorded at [100, 110) and [200, 220) are replayed at [0, 20) and [60, 100). What lies between is stretched in
// proportion: an operator of [100, 205) ends a quarter into the second call, at 70; one inside it, of [110, 155), ends
// half-way between the calls, at 40.
TEST(TimelineScene, OperatorsAreWhereTheirCallsAre) {
  Trace trace;
  Result result;
  const LaneId host = trace.lane({.kind = LaneKind::host_thread, .number = 1, .name = trace.strings.intern("host")});
  const auto call = [&](std::int64_t start, std::int64_t length, std::int64_t from, std::int64_t until) {
    trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                     .kind = OpKind::launch,
                     .lane = host,
                     .start = Picos(start),
                     .duration = Picos(length)});
    result.op_start.push_back(Picos(from));
    result.op_end.push_back(Picos(until));
  };
  call(100, 10, 0, 20);
  call(200, 20, 60, 100);
  const auto span = [&](const char* name, std::int64_t start, std::int64_t length) {
    trace.spans.name.push_back(trace.strings.intern(name));
    trace.spans.kind.push_back(SpanKind::cpu_operator);
    trace.spans.lane.push_back(host);
    trace.spans.start.push_back(Picos(start));
    trace.spans.duration.push_back(Picos(length));
  };
  span("aten::linear", 100, 105);
  span("aten::addmm", 110, 45);
  trace.ops.span[0] = static_cast<SpanId>(0);
  trace.ops.span[1] = static_cast<SpanId>(0);
  trace.ops.phase[0] = trace.ops.phase[1] = Phase::forward;
  const TimelineScene scene = timeline_scene(trace, result);
  ASSERT_EQ(scene.lanes.size(), 3U);
  EXPECT_EQ(scene.lanes[1].name, "1 operators");
  EXPECT_EQ(scene.lanes[2].name, "1 operators 2");
  const SpanLane &outer = scene.lanes[1].spans, &inner = scene.lanes[2].spans;
  ASSERT_EQ(outer.size(), 1U);
  ASSERT_EQ(inner.size(), 1U);
  EXPECT_EQ(outer.begin(0), 0);
  EXPECT_EQ(outer.end(0), 70);
  EXPECT_EQ(inner.begin(0), 20);
  EXPECT_EQ(inner.end(0), 40);
  EXPECT_TRUE(is_span(outer.id(0)));
  EXPECT_EQ(span_of(inner.id(0)), 1U);
  EXPECT_EQ(outer.color(0), static_cast<std::uint8_t>(WorkColor::forward));
  EXPECT_EQ(work_in(scene, trace, scene.whole).rows().size(), 1U);  // the calls alone
  // An operator's name finds what it launched.
  EXPECT_EQ(find_ops(trace, "LINEAR").front(), 0U);
  EXPECT_TRUE(find_ops(trace, "addmm").empty());
}

TEST(TimelineScene, FindsByPartOfAName) {
  const Example example;
  EXPECT_EQ(find_ops(example.trace, "NOR"), (std::vector<std::uint32_t>{1, 5}));
  EXPECT_TRUE(find_ops(example.trace, "nothing").empty());
  EXPECT_TRUE(find_ops(example.trace, "").empty());
}

}  // namespace
}  // namespace spillway::gui
