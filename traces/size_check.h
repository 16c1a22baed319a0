// Sizes that nothing real has, and that no later sum or rate could hold.
#pragma once

#include "traces/trace.h"

namespace spillway::traces {

// To be called once a trace is read, whatever its format. Sizes of ops are left out, with the finding
// "impossible_size", where they are beyond 2^60 bytes, or no link carries that many in the time that was recorded
// (33 PB/s). Throws InputError where a size is negative, or those of a table add up to 2^62 bytes or more. O(size).
void check_sizes(Trace& trace);

}  // namespace spillway::traces
