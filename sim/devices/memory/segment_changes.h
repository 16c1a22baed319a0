// A policy's driver calls between two observations of its state: segments taken, grown, cut and given back.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"

namespace spillway::sim {

using HeldSegments = std::map<Addr, std::pair<Bytes, bool>>;  // bytes, expandable

[[nodiscard]] HeldSegments segments_of(const PoolState& state);

// Added to `changes`, as of `event`: first what went, then what came, each by address. O(segments * log).
void note_segment_changes(std::uint32_t event, const HeldSegments& before, const HeldSegments& now,
                          std::vector<SegmentChange>& changes);

}  // namespace spillway::sim
