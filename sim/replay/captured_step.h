// A captured step as planners need it that move tensors: uses tied to memory, ops in the order of their launches.
#pragma once

#include "traces/trace.h"

namespace spillway::sim {

// True when the trace says which ops use the tensors its memory events are of, as generated traces do.
bool ties_uses_to_memory(const Trace& trace);

// Where it doesn't yet:
//   memory and phases, no uses   uses are inferred (traces/infer_uses.h)
//   uses, memory of no tensors   memory events are made from the uses, as for an order plan
//   (docs/reference/plan-files.md) both, of no tensors          by the memory events, unless `wants_recorded_uses`:
//   those know what is alive, where an
//                                ExecutionTrace's uses hold what nobody frees too long; and where these would hold
//                                more than 1.25 times as much (finding "uses_hold_too_much")
// In all the forward and backward passes are numbered as micro-batches, and each work stands behind its launch.
// Otherwise the trace comes back as it is. `purpose` is for the error. Throws InputError when the trace has not enough
// of either. O(n log n).
Trace captured_step(Trace trace, std::string_view purpose, bool wants_recorded_uses = true);

}  // namespace spillway::sim
