// Lanes of a trace with transfers over a machine's links as ops: their times follow from bytes and contention.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/offload_plan.h"
#include "traces/trace.h"

namespace spillway::sim {

struct TransferLane {
  LaneId lane = LaneId::none;
  std::uint16_t rank = 0;
  std::int16_t device = 0;  // -1 where at_device is false
  Tier tier = Tier::drive;  // of the end that is not the GPU; with at_device false the drives' end
  bool inbound = false;     // away from that end
  bool to_peer = false;     // with tier host: that end is another GPU of the machine instead
  bool at_device = true;    // false: between drives and host memory
  std::uint32_t width = 1;  // transfers at once
  DriveRoute route = DriveRoute::gpudirect;
};

// The lanes of ops marked OpFlag::by_bytes, by lane. Drives reach the GPU through host memory there (ZeRO-Infinity).
// Throws InputError when one lane's ops move both ways, aren't transfers, or some aren't marked. O(ops).
std::vector<TransferLane> transfer_lanes(const Trace& trace);

}  // namespace spillway::sim
