// The requests of a captured stream as a layout problem: what must lie where, when. For planners, and to take to other
// tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace spillway::sim {

// Alive in [lower, upper), counted in memory events of the device; what is never freed ends behind the last.
struct RequestLife {
  std::uint64_t request = 0;  // ordinal among the device's allocations of more than 0 bytes
  std::int64_t lower = 0, upper = 0;
  Bytes bytes{};  // as asked for
};

// By ordinal. Blocks from before the first event are not requests. A block allocated again at a live address ends the
// older one, as in replay_allocation_stream(). O(events log live blocks).
std::vector<RequestLife> request_lives(const Trace& trace, std::int16_t device);

// Blocks of blocks_before(), by ordinal among them: alive from -1 on.
std::vector<RequestLife> lives_before(const Trace& trace, std::int16_t device);

// "id,lower,upper,size", the form MiniMalloc reads; sizes are rounded up to 512 bytes, ids are the ordinals. Blocks
// from before come first ("before-0" and so on); if there are any, times count from 1.
std::string request_lives_csv(const std::vector<RequestLife>& lives, const std::vector<RequestLife>& before = {});

}  // namespace spillway::sim
