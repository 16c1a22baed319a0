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
  if (!on_host) result.bubble = 0.25;
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
  EXPECT_EQ(device.detail.find("busy 75.0 %"), 0U) << device.detail;
}

// Memory and counters stand with the rank that they are of, whose group comes first and is open.
TEST(TrackList, MemoryIsWithItsRank) {
  Trace trace;
  Result result;
  trace.rank_count = 3;
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    const LaneId lane = trace.lane(
        {.kind = LaneKind::stream, .rank = rank, .device = 0, .number = 7, .name = trace.strings.intern("stream 7")});
    trace.append_op(
        {.name = trace.strings.intern("work"), .kind = OpKind::kernel, .lane = lane, .duration = Picos(100)});
    result.op_start.push_back(Picos(0));
    result.op_end.push_back(Picos(100));
    trace.devices.push_back({.rank = rank, .ordinal = static_cast<std::int16_t>(rank)});
    result.ranks.push_back({.name = "stage " + std::to_string(rank)});
  }
  result.replayed = result.step_time = Picos(100);
  MemoryPicture picture;
  picture.end = 100;
  picture.kinds = {"weight"};
  picture.curve = {{0, Bytes(1), Bytes(1)}};
  picture.blocks = {{0, 100, 1 << 30, Bytes(1 << 20), 0}};
  const auto memory = memory_scene(picture);
  const TimelineScene lanes = timeline_scene(trace, result);
  const TrackScene scene{.lanes = &lanes, .memory = memory.get(), .trace = &trace, .result = &result, .rank = 2};
  std::string heading;
  int shown = 0;
  for (const Track& track : track_list(scene, {})) {
    if (track.kind == TrackKind::heading) {
      EXPECT_EQ(track.is_closed, track.name.find("stage 2") != 0) << track.name;
      heading = track.name;
    }
    if (track.kind != TrackKind::memory && track.kind != TrackKind::map) continue;
    EXPECT_EQ(heading.find("stage 2"), 0U) << heading;
    ++shown;
  }
  EXPECT_EQ(shown, 2);
}

}  // namespace
}  // namespace spillway::gui
