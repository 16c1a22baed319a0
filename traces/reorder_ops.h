// A trace with its ops in another order.
#pragma once

#include <span>

#include "traces/trace.h"

namespace spillway::traces {

// The same rows; every reference to an op follows it. Uses, edges (by `to`), syncs and collectives are sorted again.
// Precondition: `order` has every op of the trace once. Whether the program could run in that order is the caller's
// business. O(n log n).
Trace with_ops_in(Trace trace, std::span<const OpId> order);

}  // namespace spillway::traces
