// Writes a Trace as a Chakra execution trace (protobuf, schema as in traces/formats/chakra_reader.h).
//
// One node per op, id = op number + 1. Edges become data_deps and ctrl_deps; the launch of device work and the op
// before it on its lane become ctrl_deps, because Chakra knows neither launches nor lanes. Times are cut to whole
// microseconds. Memory events have no place in the format.
#pragma once

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// Does not commit. O(ops + edges).
void write_chakra(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
