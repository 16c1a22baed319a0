// Places of a step's memory events on an axis, by one of three clocks.
//
//   host      GPU  |forward 1|forward 2|backward 2|      An eager program asks for memory while it launches, far ahead
//   ..allocates..                                        of the GPU: on the host's clock a step's memory is a needle at
//   GPU           ..allocates.............frees..        its beginning. On the GPU's it lies beside the work it is for.
//
// The order of a device's events is its allocator's on every clock, so that peaks and who holds them are the same on
// all.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace spillway::sim {

enum class MemoryClock : std::uint8_t {
  gpu,      // an allocation: where the next work behind it begins; a free: where the last work before it has ended
  host,     // when the program asks
  program,  // by the number of ops that were issued before; no time
};

// A replay's times by op, and what events wait for (ScenarioRun::gate, may be empty).
struct ReplayTimes {
  std::span<const Picos> start, end;
  std::span<const OpId> gate;
};

// By memory event, ascending on each device: picoseconds, or ops issued. "Next" and "last" are those of the event's
// stream where it says which and work of it was replayed, else of its device's streams. Needs a replay's times. O(ops
// log ops + events).
std::vector<std::int64_t> event_places(const Trace& trace, const ReplayTimes& times, MemoryClock clock);

// By op: its number in host order (host_order.h), in [0, ops).
std::vector<std::int64_t> issue_places(const Trace& trace);

}  // namespace spillway::sim
