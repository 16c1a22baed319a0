// Infers the ops that use a captured forward's activations, from a capture with memory and phases but no tensors.
//
//   block     |== allocated ============================================================ given back ==|
//   forward   [writer][...][end of group U]
//   backward                                          [first op of group U] [....] [last op before the free]
//   uses       write  reads ..............             reads ..........................................
//
// An activation kept for the backward is a block of GPU memory. Its writer, the first device op after its allocation,
// is of a forward. It is given back in the backward of the same pass (a pass: a forward and the backward behind it).
// The capture doesn't say what used it in between. Ops are taken in groups: operators, where autograd's sequence
// numbers tie a backward to them; else layers. The group that gave it back is the last to run its backward before the
// free: autograd drops what a node saved as soon as the node has run. Then
//
//   U = the later of the writer's group and the group that gave it back; of operators, the one behind it, as
//       what saves its own output (relu) is not its only reader
//
// and all forward ops from the writer to the end of U, and backward ops from the beginning of U's to the free, are
// taken to read it. Both err towards holding memory longer than the program may have needed it. Not seen: an op further
// on in the forward that reads an activation without saving it (a residual connection that spans several operators).
//
// Blocks that are no such activations get no tensor: planners leave them where they are.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// Numbers the passes of each device's ops as micro-batches, through all steps, where no op has a micro-batch: a forward
// op behind a backward op begins the next. Needs phases, else changes nothing. O(n log n).
void infer_passes(Trace& trace);

// Adds a tensor (role activation, named after the operator that made it) and its uses for each activation kept, and
// ties its memory events to it. Sets Capability::uses as inferred; finding "uses_inferred". Calls infer_passes().
// Throws InputError without times, memory or phases, or when the trace has uses already. O(n log n + activations kept x
// ops of a pass).
void infer_uses(Trace& trace);

// The same in place of uses that an ExecutionTrace gave: its tensors have no addresses, so what is alive when follows
// from the memory events alone.
void infer_uses_instead(Trace& trace);

}  // namespace spillway::traces
