// How far a host may run ahead of its stores: the limits of OffloadPlan::rank_in_flight.
#pragma once

#include <vector>

#include "sim/replay/offload_plan.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::planners {

// By rank of `trace`, the least limits of unfinished stores under which the host launches every op in time: a module
// ahead of the device. The device runs as in `result`, a replay of `planned` without limits. Whatever the host is ahead
// beyond that delays the release of memory at a store's end. 0 for a rank that stores nothing. O(ops + stores).
std::vector<Bytes> least_store_limits(const Trace& trace, const OffloadPlan& plan, const PlannedTrace& planned,
                                      const Result& result);

}  // namespace spillway::planners
