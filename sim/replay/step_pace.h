// The time from one step to the next, where that is not the time of one step by itself.
#pragma once

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway {

// Ranks that wait for nobody begin their next step as soon as they are done with this one. Shifting every rank's part
// of the step by the same time keeps all waits between ranks, so the steps can follow each other at the longest time of
// any one rank, from its first kernel to its last device work (copies of what the step reads may be far ahead of it).
// Needs Result::op_start and op_end. O(ops).
Picos longest_rank_span(const Trace& trace, const Result& result);

}  // namespace spillway
