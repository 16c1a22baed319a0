// Sizes that nothing real has, and that no later sum or rate could hold.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// To be called once a trace is read, whatever its format. A size of an op beyond 2^60 bytes is left out, with the
// finding "impossible_size". So is one that no link carries in the recorded time (33 PB/s). Throws InputError where a
// size is negative, or those of a table add up to 2^62 bytes or more. O(size).
void check_sizes(Trace& trace);

}  // namespace spillway::traces
