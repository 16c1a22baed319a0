// A StepGraph as a Trace: so that spillway plans and predicts the trainer's own step.
//
//   host lane   |step begins|launch k0|launch k1|...        one stream, in the graph's order
//   memory      persistent tensors before everything; the others from the call before their first kernel to their last
#pragma once

#include <span>
#include <string>

#include "traces/trace.h"
#include "validation/trainer/step_graph.h"

namespace spillway::validation {

// durations: of each kernel, by call of the graph; launch: of each host call that starts one. The trace has times,
// memory, uses, edges and phases. Tensors are the graph's, by index. O(uses). Precondition: as many durations as calls.
Trace step_trace(const StepGraph& graph, std::span<const Picos> durations, Picos launch, const std::string& device);

// The call of the graph that an op of such a trace, or of one rewritten from it, stands for; by its name.
// Precondition: the op is a kernel of the graph.
std::size_t call_of(const StepGraph& graph, const Trace& trace, OpId op);

}  // namespace spillway::validation
