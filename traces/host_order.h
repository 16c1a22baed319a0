// The order in which a program issues what a trace holds: its host calls, each with the works it launches.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// All ops. Host calls, and works without a launch in the trace, come by their recorded start if all have one (a capture
// keeps each thread's calls apart), else by their column. Every call is followed by the works it launched, in the order
// of their columns. O(n log n).
std::vector<OpId> host_order(const Trace& trace);

}  // namespace spillway::traces
