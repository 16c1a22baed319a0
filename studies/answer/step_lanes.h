// A step's lanes over time, folded to columns: streams, communication, copies and drives, and the host's threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/pictures/timeline_lanes.h"

namespace spillway::studies {

struct StepLane {
  std::string name;
  std::uint16_t rank = 0;
  std::string kind;  // "stream", "communication", "storage", "host"
  // x, width, colour, name: hundredths of a column, sim::WorkColor, number in StepLanes::names.
  std::vector<std::int64_t> blocks;
  // first column, count, colour, level below sim::busy_levels.
  std::vector<std::int64_t> runs;
};

struct StepLanes {
  std::int64_t columns = 0;
  Picos end{};                             // of the last; the first begins at 0
  std::vector<std::string> names, colors;  // colors: by WorkColor, in words
  std::vector<StepLane> lanes;             // by rank
};

// Empty where no op has a time. At most eight lanes a rank, the busiest of each kind first.
StepLanes step_lanes(const Trace& trace, const Result& result);

}  // namespace spillway::studies
