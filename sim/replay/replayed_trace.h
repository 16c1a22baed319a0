// A replay as a trace: the same ops at the times the replay gave them, e.g. for write_chrome_trace.
//
//   ops             start and duration as replayed; both unknown_time for ops that were not replayed
//   steps           begin and span as replayed, where the result has as many steps as the trace; else left out
//   memory events   one per change of allocated or reserved in result.memory.timeline: the replayed totals and their
//                   differences (segment_allocate / segment_free for reserved), without addresses and tensors. None
//                   where the result has no timeline: recorded times belong to another clock
//   spans           left out, and with them the ops' span: they were never executed, so have no replayed times
//   capture_fit     left out: it describes the recorded machine;  time_base_ns 0: a replay starts at 0
#pragma once

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::sim {

// Precondition: `result` is of `trace` (op_start and op_end have a row per op, or are empty). O(trace + timeline).
Trace replayed_trace(const Trace& trace, const Result& result);

}  // namespace spillway::sim
