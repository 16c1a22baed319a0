// The time from one step to the next, where that is not the time of one step by itself.
#pragma once

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::sim {

// Ranks that wait for nobody begin their next step as soon as they are done with this one. Shifting every rank's part
// of the step by the same time keeps all waits between ranks. So the steps can follow each other at the longest time of
// any one rank, from its first kernel to its last device work. Copies that the step reads may be far ahead of it. Needs
// Result::op_start and op_end. O(ops).
Picos longest_rank_span(const Trace& trace, const Result& result);

// The pace that this step's work outside of any step (Trace::carried) leaves to the next one. It is the time from one
// step to the next in which all of it is done before the next step's work that waits for it. O(carried).
Picos carried_pace(const Trace& trace, const Result& result);

}  // namespace spillway::sim
