// The lanes of a replay folded to pixels, for timeline_svg.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::sim {

// Color of a piece of a lane.
enum class WorkColor : std::uint8_t {
  forward,
  recompute,
  backward,
  optimizer,
  communication,
  copy,
  storage,
  other,
  host_call,
  waiting
};
constexpr int work_color_count = static_cast<int>(WorkColor::waiting) + 1;
WorkColor work_color(OpKind kind, Phase phase);
std::string_view describe(WorkColor color);
std::string_view fill_of(WorkColor color);  // "#0072B2"

// "GPU 1 stream 7"; with the rank where the trace has several.
std::string lane_name(const Trace& trace, const Lane& lane);

// An op of at least a pixel: [x, x + width), pixels from the beginning of the time axis.
struct LaneBlock {
  double x = 0, width = 0;
  WorkColor color = WorkColor::other;
  OpId op = OpId::none;
};

// Pixel columns [first, first + count) full of work shorter than a pixel.
constexpr int busy_levels = 4;
struct LaneRun {
  int first = 0, count = 0;
  WorkColor color = WorkColor::other;
  int level = 0;  // [0, busy_levels): how busy, in quarters
};

struct LaneRow {
  LaneId lane = LaneId::none;
  std::string name;               // with rank and GPU where the trace has several
  std::vector<LaneBlock> blocks;  // do not overlap
  std::vector<LaneRun> runs;
  Picos busy{};
};

// By rank; of each rank host threads first, then streams, communication, storage, in the trace's order. Lanes without
// a replayed op in [0, span) have no row. `columns` > 0. A row has at most `columns` blocks and as many runs.
// Nothing for span <= 0. O(ops log ops + lanes x columns).
std::vector<LaneRow> fold_lanes(const Trace& trace, const Result& result, Picos span, int columns);

}  // namespace spillway::sim
