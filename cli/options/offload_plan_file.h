// Plan files with an offload part, as `plan offload` and `plan recompute` write them.
#pragma once

#include <string>

#include "sim/replay/offload_plan.h"
#include "traces/trace.h"

namespace spillway::cli {

// Marks the plan as one for this trace and writes it; nothing for an empty path. Throws InputError when it can't be
// written.
void write_offload_plan(const Trace& trace, OffloadPlan offload, const std::string& path);

}  // namespace spillway::cli
