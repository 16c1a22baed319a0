#include "traces/lane_index.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

TEST(LaneIndex, FindsWhatALookThroughAllWouldFind) {
  Trace trace;
  const Lane stream{.kind = LaneKind::stream, .device = 1, .number = 7};
  const LaneId first = trace.lane(stream);
  LaneIndex lanes(trace);
  EXPECT_EQ(lanes.find(stream), first);
  EXPECT_EQ(lanes.lane(stream), first);
  for (Lane other : {stream, stream, stream, stream}) {
    const auto which = trace.lanes.size();
    if (which == 1) other.kind = LaneKind::communication;
    if (which == 2) other.rank = 3;
    if (which == 3) other.device = 2;
    if (which == 4) other.number = 8;
    EXPECT_EQ(lanes.find(other), LaneId::none);
    const LaneId made = lanes.lane(other);
    EXPECT_EQ(index_of(made), which);
    EXPECT_EQ(lanes.find(other), made);
    EXPECT_EQ(trace.lane(other), made);
  }
  EXPECT_EQ(trace.lanes.size(), 5U);
}

TEST(LaneIndex, EndsWhereTheIdsEnd) {
  Trace trace;
  LaneIndex lanes(trace);
  for (int number = 0; number < 65'535; ++number) lanes.lane({.kind = LaneKind::stream, .number = number});
  EXPECT_EQ(lanes.find({.kind = LaneKind::stream, .number = 65'534}), LaneId(65'534));
  EXPECT_THROW(lanes.lane({.kind = LaneKind::stream, .number = 65'535}), InputError);
}

}  // namespace
}  // namespace spillway::traces
