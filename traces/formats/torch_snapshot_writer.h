// Writes the memory side of a Trace as a PyTorch memory snapshot that memory_viz opens.
//
// A protocol-4 pickle of plain data: segments, device_traces (one list per device), allocator_settings,
// external_annotations. Times are cut to whole microseconds. An event anchored to an op carries one
// synthetic stack frame that names it. Host events (device -1) have no place in the format and are left out.
#pragma once

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// Does not commit. O(events + blocks).
void write_torch_snapshot(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
