// A run of an allocator as a memory snapshot. It has the events at the addresses where the allocator placed them, the
// segments that it took and gave back before them, and its memory in the end.
//
//   events        allocations, frees (each completed at once where the trace knows no completions), and before an
//                 allocation the segments that it made the allocator take or give back; an allocation that failed is an
//                 out_of_memory event. Initial tensors of a generated step are allocated at its beginning
//   segments      the allocator's last state: rewound through the events, it is the state before them. Of an ideal
//                 allocator every block is a segment of its own
//   times         of each event in the replay
//   totals        of runs with keep_totals
#pragma once

#include <span>

#include "sim/devices/memory/allocation_stream.h"
#include "traces/trace.h"

namespace spillway::sim {

// Places the events of each of `runs` (one a device, with keep_rows and keep_segments); events of other devices are
// left out. `times`: by memory event of the trace, as event_times() has them, or empty. O(events log events).
Trace placed_snapshot(Trace trace, std::span<const AllocationStreamResult> runs, std::span<const Picos> times);

}  // namespace spillway::sim
