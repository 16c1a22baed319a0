#include <gtest/gtest.h>

#include "studies/diagnosis/counters.h"
#include "studies/diagnosis/host_clock.h"
#include "studies/diagnosis/passes.h"
#include "studies/diagnosis/work_sum.h"

namespace spillway::studies {
namespace {

// One GPU: kernels [0, 100) and [150, 250) of micro-batches 0 and 1, a copy to it [50, 150) of 1,000 bytes, a write of
// 400 bytes to a drive [100, 300), and one of 200 bytes [200, 300).
struct Example {
  Trace trace;
  Result result;
  LaneId stream, copies, drive, second;
  Example() {
    const auto lane = [&](LaneKind kind, std::uint32_t number) {
      return trace.lane({.kind = kind, .device = 0, .number = number, .name = trace.strings.intern("lane")});
    };
    stream = lane(LaneKind::stream, 7);
    copies = lane(LaneKind::stream, 8);
    drive = lane(LaneKind::storage, 0);
    second = lane(LaneKind::storage, 1);
    add(stream, "gemm", OpKind::kernel, Phase::forward, 0, 0, 100, 10);
    add(copies, "copy", OpKind::copy_host_to_device, Phase::unknown, no_index16, 50, 150, 1000);
    add(drive, "store", OpKind::storage_write, Phase::unknown, no_index16, 100, 300, 400);
    add(stream, "gemm", OpKind::kernel, Phase::forward, 1, 150, 250, 10);
    add(second, "store", OpKind::storage_write, Phase::unknown, no_index16, 200, 300, 200);
    result.replayed = Picos(300);
  }
  void add(LaneId lane, const char* name, OpKind kind, Phase phase, std::uint16_t batch, std::int64_t start,
           std::int64_t end, std::int64_t bytes) {
    trace.append_op({.name = trace.strings.intern(name),
                     .kind = kind,
                     .phase = phase,
                     .lane = lane,
                     .micro_batch = batch,
                     .duration = Picos(end - start),
                     .bytes = Bytes(bytes)});
    result.op_start.push_back(Picos(start));
    result.op_end.push_back(Picos(end));
  }
};

const KindRow* row_of(const std::vector<KindRow>& rows, const std::string& name) {
  for (const KindRow& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}

// Of [80, 210): kernels 20 + 60, the copy 70, the stores 110 + 10; nothing else.
TEST(Stretch, IsSummedByKind) {
  const Example example;
  const auto kinds = work_of(example.trace, example.result, {80, 210}).kinds();
  ASSERT_EQ(kinds.size(), 3U);
  EXPECT_EQ(kinds.front().name, "writes to drives");
  const KindRow *const kernels = row_of(kinds, "kernels"), *const copies = row_of(kinds, "copies to the GPU"),
                       *const writes = row_of(kinds, "writes to drives");
  ASSERT_TRUE(kernels != nullptr && copies != nullptr && writes != nullptr);
  EXPECT_EQ(kernels->count, 2U);
  EXPECT_EQ(kernels->total, 80);
  EXPECT_EQ(kernels->longest, 60);
  EXPECT_EQ(kernels->example, 3U);
  EXPECT_EQ(copies->total, 70);
  EXPECT_EQ(copies->bytes, 1000);
  EXPECT_EQ(writes->total, 120);
  EXPECT_EQ(writes->bytes, 600);
}

// By name as well: what ends where the stretch begins is not in it.
TEST(Stretch, IsSummedByName) {
  const Example example;
  const auto rows = work_of(example.trace, example.result, {100, 200}).rows();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "store");
  EXPECT_EQ(rows[0].total, 100);
  EXPECT_EQ(rows[1].name, "gemm");
  EXPECT_EQ(rows[1].count, 1U);
  EXPECT_EQ(rows[1].total, 50);
  EXPECT_EQ(rows[2].name, "copy");
  EXPECT_EQ(rows[2].total, 50);
}

// Busy 200 of 300; 1,000 bytes in; 600 out, over 300 ps; the queue holds 1 for 100 and 2 for 100.
TEST(Stretch, CountersHaveTheirMeans) {
  const Example example;
  const auto counters = counters_of(example.trace, example.result);
  ASSERT_EQ(counters.size(), 4U);
  EXPECT_EQ(counters[0].name, "GPU busy");
  EXPECT_NEAR(counters[0].mean(0, 300), 200.0 / 300, 1e-12);
  EXPECT_NEAR(counters[1].mean(0, 300) * 300e-12, 1000, 1e-6);
  EXPECT_NEAR(counters[2].mean(0, 300) * 300e-12, 600, 1e-6);
  EXPECT_NEAR(counters[3].mean(0, 300), 1.0, 1e-12);
  EXPECT_NEAR(counters[3].mean(200, 300), 2.0, 1e-12);
  EXPECT_NEAR(counters[0].mean(100, 150), 0, 1e-12);
  EXPECT_TRUE(counters_of(example.trace, example.result, 1).empty());  // no such rank
}

// The kernels' micro-batches are passes of their own; copies are work of none and come between them.
TEST(Stretch, PassesAreOfOneMicroBatch) {
  const Example example;
  EXPECT_TRUE(has_micro_batches(example.trace));
  const auto passes = passes_of(example.trace, example.result);
  ASSERT_EQ(passes.size(), 1U);
  ASSERT_EQ(passes[0].size(), 3U);
  EXPECT_EQ(pass_name(passes[0][0], true), "0 forward");
  EXPECT_EQ(passes[0][0].end, 100);
  EXPECT_EQ(passes[0][1].begin, 100);
  EXPECT_EQ(passes[0][1].end, 150);
  EXPECT_EQ(pass_name(passes[0][2], true), "1 forward");
  EXPECT_EQ(pass_name(passes[0][2], false), "forward");
}

// Recorded [100, 110) and [200, 220), replayed [0, 20) and [60, 100): half-way between the calls is half-way.
TEST(Stretch, HostClockIsStraightBetweenCalls) {
  Trace trace;
  Result result;
  const LaneId host = trace.lane({.kind = LaneKind::host_thread, .number = 1, .name = trace.strings.intern("host")});
  const auto call = [&](std::int64_t start, std::int64_t length, std::int64_t from, std::int64_t until) {
    trace.append_op({.name = trace.strings.intern("launch"),
                     .kind = OpKind::launch,
                     .lane = host,
                     .start = Picos(start),
                     .duration = Picos(length)});
    result.op_start.push_back(Picos(from));
    result.op_end.push_back(Picos(until));
  };
  call(100, 10, 0, 20);
  call(200, 20, 60, 100);
  const HostClock clock(trace, result, host);
  EXPECT_EQ(clock.replayed(100), 0);
  EXPECT_EQ(clock.replayed(155), 40);
  EXPECT_EQ(clock.replayed(210), 80);
  EXPECT_EQ(clock.replayed(250), 130);  // after the last: as recorded
  EXPECT_EQ(clock.replayed(50), 0);     // before the first: not before the replay
  EXPECT_TRUE(HostClock(trace, result, LaneId::none).empty());
}

}  // namespace
}  // namespace spillway::studies
