// What runs between a generated step's first iteration and the step that is shown, as far as its allocator is
// concerned: steps with other draws, an evaluation. Kept as late events without a tensor (StartUpEvent).
#pragma once

#include "traces/trace.h"

namespace spillway::models {

// Appends the allocations that `other`, a generated trace of the same ranks, makes after its beginning, and their frees
// in the same order; what it leaves behind goes at its end. O(memory events of `other`).
void add_interlude(Trace& step, const Trace& other);

}  // namespace spillway::models
