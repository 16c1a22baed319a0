// Parts of reserved memory: the price of fragmentation, part by part.
//
//   reserved = requested + rounding + slack + pending + partly used + cached
//              `------- allocated -------'
//
//   segment  |## A ##:r:slack|..free..|## B ##|      rounding: to 512 bytes;  slack: a block handed out larger than
//   that,
//                              partly used            because its rest was too small to split off
//   segment  |............free............|           cached: nothing of the segment is in use, the driver could have
//   it
#pragma once

#include <cstdint>

#include "sim/devices/memory/allocation_stream.h"

namespace spillway::sim {

struct ReservedParts {
  Bytes requested{}, rounding{}, slack{}, pending{};
  Bytes partly_used_small{}, partly_used_large{};  // free blocks of segments in use, by pool
  Bytes cached_small{}, cached_large{};            // segments that are free as a whole

  [[nodiscard]] Bytes fragmented() const {
    return pending + partly_used_small + partly_used_large + cached_small + cached_large;
  }
  [[nodiscard]] Bytes allocated() const { return requested + rounding + slack; }
  [[nodiscard]] Bytes reserved() const { return allocated() + fragmented(); }
};

// O(blocks).
ReservedParts reserved_parts(const PoolState& state);

// After the event when most is reserved, of several the one when most is allocated. Runs the stream twice. Errors as
// replay_allocation_stream().
ReservedParts parts_at_reserved_peak(const Trace& trace, const AllocationStreamOptions& options);

}  // namespace spillway::sim
