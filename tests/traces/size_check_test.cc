#include "traces/size_check.h"

#include <gtest/gtest.h>

#include <string>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

constexpr std::int64_t exa = std::int64_t{1} << 60;

Trace copy_of(std::int64_t bytes, Picos duration) {
  Trace trace;
  const LaneId lane = trace.lane({.kind = LaneKind::stream, .device = 0, .number = 7});
  trace.append_op({.name = trace.strings.intern("copy"),
                   .kind = OpKind::copy_host_to_device,
                   .lane = lane,
                   .start = Picos(0),
                   .duration = duration,
                   .bytes = Bytes(bytes)});
  return trace;
}

std::string error_of(Trace trace) {
  try {
    check_sizes(trace);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Trace blocks_of(const std::vector<std::int64_t>& sizes) {
  Trace trace;
  for (const std::int64_t size : sizes) trace.memory_events.push_back({.address = Addr(4096), .bytes = Bytes(size)});
  return trace;
}

TEST(CheckSizes, LeavesOutWhatNoLinkCarries) {
  for (const std::int64_t bytes : {std::int64_t{1} << 53, exa, INT64_MAX}) {
    Trace trace = copy_of(bytes, microseconds(1));
    check_sizes(trace);
    EXPECT_EQ(trace.ops.bytes[0], Bytes(0)) << bytes;
    EXPECT_EQ(trace.ops.duration[0], microseconds(1));
    ASSERT_NE(trace.finding("impossible_size"), nullptr) << bytes;
    EXPECT_TRUE(trace.finding("impossible_size")->is_error);
  }
  for (const Picos duration : {Picos(0), unknown_time}) {
    Trace trace = copy_of(INT64_MAX, duration);
    check_sizes(trace);
    EXPECT_NE(trace.finding("impossible_size"), nullptr);
  }
  // 4 TB in a microsecond is more than any link of today carries, and left to the profile.
  Trace fast = copy_of(std::int64_t{1} << 32, microseconds(1));
  check_sizes(fast);
  EXPECT_EQ(fast.ops.bytes[0], Bytes(std::int64_t{1} << 32));
  EXPECT_EQ(fast.finding("impossible_size"), nullptr);
}

TEST(CheckSizes, RefusesSumsNothingHas) {
  EXPECT_EQ(error_of(blocks_of({exa, exa, exa})), "");
  EXPECT_NE(error_of(blocks_of({exa, exa, exa, exa})).find("2^62"), std::string::npos);
  EXPECT_NE(error_of(blocks_of({512, -512})).find("negative"), std::string::npos);
  Trace segments;
  segments.memory_segments.assign(5, {.total = Bytes(exa)});
  EXPECT_NE(error_of(segments).find("segments"), std::string::npos);
}

}  // namespace
}  // namespace spillway::traces
