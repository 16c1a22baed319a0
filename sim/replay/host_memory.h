// Host memory that a step holds for its GPUs: optimizer state and weights kept there, buffers on the way, and what an
// offload plan sends there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hwprofiles/host_profile.h"
#include "sim/devices/rank_places.h"
#include "sim/replay/periodic_run.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::sim {

// The most at once, by all ranks on a machine with all their GPUs there, of the machine that holds most: pinned memory
// of exactly the bytes needed (PyTorch rounds pinned blocks up to powers of two; MemAscend, arXiv 2505.23254).
// A storage away at the step's start counts for the whole step: the copy there stays until it is written anew.
// event_time: by memory event of `trace`. planned: null for a plain trace. whole: of a folded step under a plan, whose
// times are those as replayed; else null. None where its ranks are not regular at one time. Unknown where
// the trace has no transfers. O(n log n) in memory events and transfers.
std::optional<HostMemoryResult> host_memory(const Trace& trace, const PlannedTrace* planned,
                                            std::span<const Picos> event_time, std::span<const Picos> op_start,
                                            std::span<const Picos> op_end, const PeriodicRun* whole,
                                            const HostProfile& host, const RankPlaces& places);

}  // namespace spillway::sim
