// Chakra execution traces (MLCommons): protobuf, and the JSON form some tools write.
//
// Protobuf file: [varint length][GlobalMetadata] [varint length][Node] [varint length][Node] ...
// JSON file: {"workload_graph": [{"Id": 1, "Name": "...", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 3,
// "is_cpu_op": true}]}, key case and underscores ignored (a well-known file was damaged by replacing "id" by "Id"
// throughout).
//
//   COMP with is_cpu_op            -> host_work on thread `tid`
//   COMP without, COMM_*, MEM_*    -> kernel, copy, memset; collective; copies, on stream `tid`
//   data_deps, ctrl_deps           -> edges (control ones include the caller of an operator)
//   inputs, outputs (Python text)  -> tensors and uses, by the rules of traces/formats/execution_trace_reader.h
//
// Start times are 0 in every file seen; then only durations are known and `times` is marked as inferred.
#pragma once

#include "base/byte_source.h"
#include "traces/formats/read.h"

namespace spillway::traces {

// A message that claims more than 64 MiB is refused. Throws InputError (place: byte offset). O(n log n).
Trace read_chakra(ByteSource& source, const ReadOptions& options);
Trace read_chakra_json(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
