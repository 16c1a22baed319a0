// The memory events of a trace by device.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// Devices with memory events or segments, ascending; host memory (-1) left out.
std::vector<std::int16_t> memory_devices(const Trace& trace);

// The events of one device, indices into Trace::memory_events.
using EventIndex = std::vector<std::uint32_t>;
// By device, ascending, those without events left out. One pass: for replaying many devices, or one many times.
std::vector<std::pair<std::int16_t, EventIndex>> index_memory_events(const Trace& trace);

// By event: whether it gives cached memory back because of the request behind it, to make room or by age. These frees
// come right before a new segment or a request that failed; a program's empty_cache() does not. O(events).
std::vector<bool> frees_for_requests(const Trace& trace, const EventIndex& events);

}  // namespace spillway::traces
