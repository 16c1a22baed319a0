// Inference from a trace's names, threads and times: phases, layers, steps, saved activations.
//
// Nothing that a reader has filled in is changed. Phases come, best source first, from
//   1. annotations: "Optimizer.step#", "Optimizer.zero_grad#", "## forward ##", "## backward ##" and kin, and
//      autograd's own marks: "autograd::engine::evaluate_function: X" and X...Backward. These count as stamped.
//   2. operators whose autograd sequence number returns in a backward operator: forward (flag phase_inferred)
//   3. a thread that runs backward operators but no step: all its calls are backward (inferred)
//   4. operators before the first backward operator of their step: forward (inferred)
// Inside CheckpointFunctionBackward, what autograd does not mark as backward is recompute. Device work has its
// launch's phase; collectives are communication. The rest stays unknown.
//
// Layers come from names only: "layers.12", "blocks.3", "h.5", "nn.Module: LlamaDecoderLayer_7" (instances of classes
// named ...Layer or ...Block; the profiler numbers them per class). Backward operators get the layer of the forward
// operator with their sequence number. Without such names the layer stays unknown.
#pragma once

#include <cstdint>

#include "traces/trace.h"

namespace spillway::traces {

// All of the below, in order. O(n log n).
void derive(Trace& trace);

// Ops without a step get the one in which they, or their launch, began. Steps are sorted by start and half-open.
void assign_steps(Trace& trace);

// Sets Capability::phases if any op has a phase at the end, as inferred if one of them is.
void derive_phases(Trace& trace);
void derive_layers(Trace& trace);

// Gives role activation to tensors of unknown role that are allocated in a forward and freed in a backward phase.
void derive_activations(Trace& trace);

}  // namespace spillway::traces
