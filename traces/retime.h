// Other times for a trace's ops, and with them for what lies between: spans, memory events, steps.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

// By op; unknown_time: none is known, and the op keeps its duration and its place between the calls around it.
struct OpTimes {
  std::vector<Picos> start, duration;
};

// Times between those of two host calls are moved in proportion, those before the first and behind the last with it.
// A lane's ops stay in their order. Steps begin and end where their instants are moved to. Precondition: both columns
// have a row per op. O(n log n).
void retime(Trace& trace, const OpTimes& times);

}  // namespace spillway::traces
