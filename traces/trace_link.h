// Puts what an ExecutionTrace knows (tensors, uses, dependencies) into the Kineto trace of the same run, which
// knows the times.
//
// Operators are matched by record-function id and name. Newer captures carry the id on both sides ("Record function
// id"). Older ones have "External id" instead, which counts alike but may be shifted by a constant, or hold more steps.
// Each thread votes for the shift: each pair of equal, rare names for its difference of ids. The shift under which most
// of the thread's operators match by name wins.
//
//   uses   of an operator go to every device op it launched (to the host op itself where nothing was launched)
//   edges  go from the last op of one operator to the first of the other; those that the recorded times contradict
//          are dropped (finding "edge_against_time")
//   phases are taken over where the Kineto trace has none
//
// Findings: join_matched, join_unmatched (operators with ops of the ExecutionTrace that found no partner),
// join_shift.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// Throws InputError when less than half of the ExecutionTrace's operators find a partner: then it is of another run.
// O(n log n).
Trace link_traces(Trace kineto, const Trace& execution_trace);

}  // namespace spillway::traces
