// TrioSim operator tables: trace.csv (one row per operator, with its GPU time) and tensor.csv beside it.
//
//   row -> kernel on the one stream of its gpuid, duration Operator_cudatime (us), phase from `stage`
//   Operator_input, Operator_output ("[4; 6]") -> uses; tensor.csv gives elements, element size, storage, role
//   edges: by tensor, as in traces/formats/execution_trace_reader.h. No start times: `times` is marked inferred.
#pragma once

#include <string>

#include "base/byte_source.h"
#include "traces/formats/read.h"

namespace spillway::traces {

// `path`: the folder or the trace.csv in it. Throws InputError; rows that can't be used are findings.
Trace read_triosim(const std::string& path, const ReadOptions& options);
Trace read_triosim(ByteSource& operators, ByteSource& tensors, const ReadOptions& options);

}  // namespace spillway::traces
