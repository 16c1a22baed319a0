// Writes the memory side of a Trace as a PyTorch memory snapshot that memory_viz opens.
//
// A protocol-4 pickle of plain data: segments, device_traces (one list per device), allocator_settings,
// external_annotations. Times are cut to whole microseconds. An event's frames, which hold a program's stack
// elsewhere, say whose the block is, the innermost first: tensor, role, operator, layer, micro-batch, phase as far as
// they are known, each in `filename`, its name in `name`. Host events (device -1) have no place in the format and are
// left out.
#pragma once

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// Does not commit. O(events + blocks).
void write_torch_snapshot(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
