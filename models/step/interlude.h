// Work between a generated step's first iteration and the step that is shown, as its allocator sees it: steps with
// other draws, an evaluation.
#pragma once

#include "traces/trace.h"

namespace spillway::models {

// Has `other`, generated with other draws, be a step before it and behind those added so far: the same tensors, some of
// other sizes (StartUpEvent). O(memory events).
void add_step_before(Trace& step, const Trace& other);

// Appends the allocations that `evaluation`, a generated trace of the same ranks, makes after its beginning, and their
// frees in the same order. Blocks that it leaves behind go at its end. They are late events without a tensor
// (StartUpEvent): forwards that keep nothing for a backward have nothing that a plan could move. O(memory events of
// `evaluation`).
void add_evaluation(Trace& step, const Trace& evaluation);

// Has the step hold what `other`, a generated trace of the same ranks, has before its step and to the end: weights and
// states of a model beside. They are tensors that no operator of the step uses. Gives how many memory events are now
// before the step's own. O(memory events of both).
std::size_t hold_beside(Trace& step, const Trace& other);

}  // namespace spillway::models
