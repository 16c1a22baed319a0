// Dependencies that wait for each other in a circle can never run.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// Throws InputError that names an op on a cycle of Trace::edges and the ops after it. O(ops + edges).
void check_acyclic(const Trace& trace);

}  // namespace spillway::traces
