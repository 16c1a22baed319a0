// The "raw" memory timeline of torch.profiler (export_memory_timeline with a .raw.json.gz name).
//
// A list of [time, action, bytes, category]: time in epoch nanoseconds, -1 for what existed before the
// profile; action 1 pre-existing, 2 create, 3 increment version, 4 destroy (bytes negative or positive).
// Categories tell what a tensor is for. There are no addresses, streams or op anchors: the file says how
// much memory each category held when, no more. Version increments change no memory and are not events.
//
//   pre-existing, create -> allocate      destroy -> free_completed
//
// The category becomes the name and role of one tensor per category (finding "categories_not_tensors").
#pragma once

#include "base/byte_source.h"
#include "traces/formats/read.h"

namespace spillway::traces {

Trace read_memory_timeline(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
