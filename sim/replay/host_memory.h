// Host memory that a step holds for its GPUs: optimizer state and weights kept there, buffers on the way, and what an
// offload plan sends there.
#pragma once

#include <cstdint>
#include <span>

#include "hwprofiles/host_profile.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::sim {

// The most at once, of the rank that holds most, times the `sharing` GPUs of a machine that do alike: pinned memory of
// exactly the bytes needed (PyTorch rounds pinned blocks up to powers of two; MemAscend, arXiv 2505.23254).
// A storage away at the step's start counts for the whole step: the copy there stays until it is written anew.
// event_time: by memory event of `trace`. planned: null for a plain trace. Unknown where the trace has no transfers.
// O(n log n) in memory events and transfers.
HostMemoryResult host_memory(const Trace& trace, const PlannedTrace* planned, std::span<const Picos> event_time,
                             std::span<const Picos> op_start, std::span<const Picos> op_end, const HostProfile& host,
                             std::int64_t sharing);

}  // namespace spillway::sim
