// Nsight Systems exports (nsys export --type sqlite).
//
// Times are nanoseconds since the session began. Tables exist only where something was recorded, and newer versions
// renamed some, so the reader tries each and asks for each column by name. Join of device work to the call that
// launched it: correlationId and process (globalTid and globalPid share all but the low 24 bits).
//
//   CUPTI_ACTIVITY_KIND_RUNTIME          -> host calls       _KERNEL, _MEMCPY, _MEMSET -> device work
//   CUPTI_ACTIVITY_KIND_SYNCHRONIZATION  -> syncs            NVTX_EVENTS (push/pop, start/end) -> spans
//   CUPTI_ACTIVITY_KIND_CUDA_EVENT       -> what events mark (nsys profile --cuda-event-trace=true)
//   CUDA_GPU_MEMORY_USAGE_EVENTS         -> memory events    TARGET_INFO_GPU -> devices
//
// Processes with GPU work are ranks, by process number. An event without an end (the recording stopped) is kept
// with an unknown duration.
#pragma once

#include <string>

#include "traces/formats/read.h"

namespace spillway::traces {

// Opens the file read-only and leaves nothing beside it. options.progress gets the rows read so far and 0, every
// 65,536 rows. Throws InputError, Cancelled. O(n log n).
Trace read_nsys(const std::string& path, const ReadOptions& options);

}  // namespace spillway::traces
