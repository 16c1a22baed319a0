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

// Most host memory at once on one machine, by all ranks with all their GPUs there; the machine that holds most counts.
// Pinned memory of exactly the bytes needed (PyTorch rounds pinned blocks up to powers of two; MemAscend, arXiv
// 2505.23254). A storage away at the step's start counts for the whole step: the copy there stays until it is written
// again. `event_time`: by memory event of `trace`. `planned`: null for a plain trace. `whole`: of a folded step under a
// plan, with times as replayed; else null. No result if its ranks are not regular at one time. Unknown if the trace has
// no transfers. O(n log n) in memory events and transfers.
std::optional<HostMemoryResult> host_memory(const Trace& trace, const PlannedTrace* planned,
                                            std::span<const Picos> event_time, std::span<const Picos> op_start,
                                            std::span<const Picos> op_end, const PeriodicRun* whole,
                                            const HostProfile& host, const RankPlaces& places);

}  // namespace spillway::sim
