// Writes the memory side of a Trace as a PyTorch memory snapshot that memory_viz opens.
//
// A protocol-4 pickle of plain data: segments, device_traces (one list per device), allocator_settings,
// external_annotations. Times are cut to whole microseconds. Elsewhere an event's frames hold a program's stack. Here
// they describe the block, the innermost first: tensor, role, operator, layer, micro-batch, phase as far as they are
// known, each in `filename`, its name in `name`. A recorded stack that was kept takes their place. A block or segment
// that is there in the end has the frames of the event that made it. Host events (device -1) have no place in the
// format and are left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// An allocator's setting, for viewers that list them.
using SnapshotSetting = std::pair<std::string, std::variant<bool, std::int64_t, double, std::string>>;

// Neither commits. O((events + blocks) log blocks).
void write_torch_snapshot(const Trace& trace, OutputFile& out);
void write_allocator_snapshot(const Trace& trace, OutputFile& out, std::span<const SnapshotSetting> settings);

}  // namespace spillway::traces
