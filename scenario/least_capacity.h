// How much memory a step's allocator needs, found by trying: what it reserves without a limit is more, since under a
// limit it gives cached segments back.
#pragma once

#include <optional>

#include "base/units.h"
#include "sim/replay/memory_replay.h"
#include "traces/trace.h"

namespace spillway::scenario {

// The least capacity, not below options.capacity, within which the stream of each device runs. It is exact to 2 MiB
// (torch reserves no less; to 512 bytes where nothing fragments). Found by bisection between the most that is allocated
// at once, the least any allocator needs, and the reservation without a limit. A step may fail again with more memory
// than it ran in, through fragmentation; this is not searched. Limits that a run meets alike are one
// (limit_matters_only_when_met()). The trace's events are taken in their order. `failed`: a device that is known not to
// run within options.capacity, with its peaks without a limit. A device that fits takes one run of its stream; another
// takes two to five where limits are alike, about a dozen otherwise. None of a folded step that can't tell it. Throws
// InputError as MemoryReplay does.
std::optional<Bytes> least_capacity(const Trace& trace, const MemoryReplayOptions& options,
                                    const std::optional<DevicePeaks>& failed = std::nullopt);

}  // namespace spillway::scenario
