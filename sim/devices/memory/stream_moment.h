// All that decides what an allocation policy does from some event on: what is held, and where.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/devices/memory/memory_pool.h"

namespace spillway::sim {

// A block and what was asked for it.
struct HeldBlock {
  BlockId block = BlockId::none;
  Bytes bytes{};
  std::int64_t stream = 0;
  Addr place{};  // of a block that an event of the stream allocated; 0: one from before, or its place means nothing
  Bytes size{};  // as above
};

struct StreamMoment {
  std::vector<std::pair<std::uint64_t, HeldBlock>> live;  // by recorded address, ascending
  PoolState state;                                        // empty for policies that places mean nothing to
  DriverCost cost{};                                      // of the run until then; equal moments may differ in it

  // Blocks with a place are equal by it: the pool's names for them change from round to round. O(blocks).
  [[nodiscard]] friend bool operator==(const StreamMoment& a, const StreamMoment& b) { return a.equals(b); }

 private:
  [[nodiscard]] bool equals(const StreamMoment& other) const;
};

}  // namespace spillway::sim
