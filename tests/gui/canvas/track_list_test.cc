#include "gui/canvas/track_list.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

// The heading of a capture of one rank.
Track heading_of(bool on_host) {
  Trace trace;
  const LaneId lane =
      trace.lane({.kind = on_host ? LaneKind::host_thread : LaneKind::stream, .name = trace.strings.intern("lane")});
  trace.append_op({.name = trace.strings.intern("work"),
                   .kind = on_host ? OpKind::launch : OpKind::kernel,
                   .lane = lane,
                   .duration = Picos(100)});
  Result result;
  result.step_time = result.replayed = Picos(100);
  result.memory.on_host = on_host;
  result.op_start = {Picos(0)};
  result.op_end = {Picos(100)};
  const TimelineScene lanes = timeline_scene(trace, result);
  const TrackScene scene{.lanes = &lanes, .trace = &trace, .result = &result, .device = "a card"};
  const std::vector<Track> tracks = track_list(scene, {});
  EXPECT_FALSE(tracks.empty());
  return tracks.empty() ? Track{} : tracks.front();
}

// Nothing of a CPU-only capture ran on the profile's GPU, and no GPU was busy.
TEST(TrackList, ACaptureOfTheHostHasNoGpu) {
  const Track host = heading_of(true), device = heading_of(false);
  EXPECT_EQ(host.label, "Host");
  EXPECT_EQ(host.detail.find("busy"), std::string::npos) << host.detail;
  EXPECT_EQ(device.label, "GPU 0 · a card");
  EXPECT_EQ(device.detail.find("busy"), 0U) << device.detail;
}

}  // namespace
}  // namespace spillway::gui
