// PyTorch memory snapshots (torch.cuda.memory._dump_snapshot, and the pickles C++ programs write).
//
//   device_traces      -> memory_events; sizes are the bytes the program asked for (before rounding)
//   segments           -> memory_segments, memory_blocks: the state when the snapshot was taken
//   allocator_settings -> finding "allocator_settings" and the producer
//   external_annotations (START/END pairs) -> spans
//
// Times are microseconds since the epoch; time 0 of the Trace is the earliest event. Unknown keys are accepted; stack
// frames are skipped unless ReadOptions::keep_stacks; of `oom`, the free bytes of the device are the event's address.
// Blocks of very old snapshots have no address: theirs follow from the sizes before them. The file does not state what
// existed before the recording began.
#pragma once

#include "base/byte_source.h"
#include "traces/formats/read.h"

namespace spillway::traces {

// Throws InputError for what isn't a snapshot; odd rows are findings. O(bytes), memory about ten times
// the (decompressed) file without its frames.
Trace read_torch_snapshot(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
