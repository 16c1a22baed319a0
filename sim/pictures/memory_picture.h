// An allocator's memory over time, ready to be painted: a curve, and blocks at their addresses.
#pragma once

#include <cstdint>
#include <functional>
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
    std::int64_t event = -1;  // behind which it is so, in Trace::memory_events; -1: what was there before
  };
  struct Block {
    std::int64_t begin = 0, end = 0;  // half-open
    std::uint64_t address = 0;
    Bytes size{};
    std::size_t kind = 0;
    std::int64_t event = -1;  // that allocated it, in Trace::memory_events; -1: it was there before
    std::int64_t freed = -1;  // that freed it; -1: it stays to the end
  };
  // Bytes that an owner takes; negative: gives back.
  struct Change {
    std::int64_t at = 0;
    std::size_t kind = 0;
    std::int64_t bytes = 0;
  };
  std::string title, subtitle;
  bool timed = false;               // `at` in picoseconds; else in memory events
  std::int64_t begin = 0, end = 0;  // of the whole; begin < end
  std::vector<Point> curve;         // ascending; each holds until the next
  std::vector<Block> blocks;        // in order of address
  std::vector<Change> changes;      // in the allocator's order; summed up they are the curve's `allocated`; or none
  std::vector<std::string> kinds;   // who holds a block: by role, else by phase; most bytes first
  Bytes capacity{};                 // 0: none
};

// From a run with keep_rows and keep_totals, on the record's clock, or event by event where events have no times.
// O(events log events).
MemoryPicture memory_picture(const Trace& trace, const AllocationStreamResult& run);

// Who holds what a memory event allocates, in words of the caller's.
using OwnerOf = std::function<std::string(std::uint32_t event)>;

// With `changes`, on the caller's clock, to `end` at least. places: by memory event, ascending (memory_clock.h); none:
// as the record has them. Memory without a known owner is a separate kind, "held before". owner: names the kinds; none:
// by role, else phase.
MemoryPicture memory_picture_on(const Trace& trace, const AllocationStreamResult& run,
                                std::span<const std::int64_t> places, bool timed, std::int64_t end,
                                const OwnerOf& owner = {});

// By kind, when the most is held. Of a picture with `changes`.
std::vector<std::int64_t> owners_at_peak(const MemoryPicture& picture);

}  // namespace spillway::sim
