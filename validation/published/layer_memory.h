// Memory of a model's layers, apart from embedding, head and whatever is there for a moment only: the quantities of
// closed forms such as those of Korthikanti et al. 2022 (section 4, table 2; figures 1 and 7 show them).
//
//   kept     bytes that layers keep from their forward to their backward. A tensor counts if it is an activation, was
//            made before the first backward operator of its micro-batch on its rank, is used after it, and a layer's
//            operator uses it last. (The input of layer 0 counts; what the last layer gives to the head does not.)
//   state    bytes of weights, gradients, master weights and optimizer state that live all the time and belong to a
//            layer, which generated traces say by name ("layers.3.mlp.up.weight").
#pragma once

#include "traces/trace.h"

namespace spillway::validation {

// Most bytes kept at once, of the rank that keeps most. Frees count when they are requested. Precondition: the trace
// has memory, uses and phases. 0: it names no layers. O(uses + memory events).
double most_kept_by_layers(const Trace& trace);

// Mean over the ranks, allocated before the step. Precondition: the trace has memory. 0: it names no layers. O(events
// before the step).
double state_of_layers(const Trace& trace);

}  // namespace spillway::validation
