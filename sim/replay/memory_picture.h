// What an allocator holds over time, ready to be painted: a curve, and blocks at their addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"
#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::sim {

struct MemoryPicture {
  struct Point {
    std::int64_t at = 0;
    Bytes allocated{}, reserved{};
  };
  struct Block {
    std::int64_t begin = 0, end = 0;  // half-open
    std::uint64_t address = 0;
    Bytes size{};
    std::size_t kind = 0;
    std::int64_t event = -1;  // that allocated it, in Trace::memory_events; -1: it was there before
  };
  std::string title, subtitle;
  bool timed = false;               // `at` in picoseconds; else in memory events
  std::int64_t begin = 0, end = 0;  // of the whole; begin < end
  std::vector<Point> curve;         // ascending; each holds until the next
  std::vector<Block> blocks;        // in order of address
  std::vector<std::string> kinds;   // who holds a block: by role, else by phase; most bytes first
  Bytes capacity{};                 // 0: none
};

// From a run with keep_rows and keep_totals. With op_start (a replay's, by op) on the replay's clock; without, on the
// record's, or event by event where events have no times. O(events log events).
MemoryPicture memory_picture(const Trace& trace, const AllocationStreamResult& run, std::span<const Picos> op_start);

}  // namespace spillway::sim
