// rocprofv3's own JSON (`rocprofv3 --output-format json`, NAME_results.json).
//
// Source of the format: ROCm/rocprofiler-sdk, source/docs/rocprofv3-schema.json and source/lib/output/generateJSON.cpp.
// Records become the slices that rocprofv3's Perfetto file has of the same run, so what perfetto_reader.h says of those
// holds here: buffer_records' hip_api, hsa_api, marker_api, rccl_api, kernel_dispatch and memory_copy. Streams are
// stream_id, or queue_id where a version has none. Names come from kernel_symbols and strings, wherever these stand.
// Counters, samples and allocations are not read. In a file of several processes the first is read.
#pragma once

#include "base/byte_source.h"
#include "traces/read_options.h"
#include "traces/trace.h"

namespace spillway::traces {

// Throws InputError (place: byte offset) for broken JSON, nesting deeper than 64, and a file without any record. Does
// not derive. The text is in memory while it is read, beside some 100 bytes a record. O(n log n).
Trace read_rocprof_json(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
