// Perfetto's protobuf traces (.pftrace, .perfetto-trace): rocprofv3, the Perfetto SDK, JSON traces converted.
//
// Source of the format: google/perfetto, protos/perfetto/trace/ and docs/reference/synthetic-track-event;
// of rocprofv3's tracks and arguments: ROCm/rocprofiler-sdk, source/lib/output/generatePerfetto.cpp. One pass, one
// packet in memory at a time; slices are kept until the end, since tracks and clocks may be described after them.
//
// Every slice becomes the event that the same in Chrome's JSON would be (categories, argument names, names of
// processes and threads), so what traces/formats/kineto/kineto_reader.h says of those holds here. Beyond that
//   slices         begin and end are paired in the file's order, what is left over by time
//   rocprofv3      hip_api -> calls, joined with the work they launched by corr_id; kernel_dispatch and memory_copy ->
//                  work of the stream or queue that their track names, agents counted from 0; marker_api, rccl_api,
//                  and hsa_api -> ranges (hsa_api are the calls where no hip_api was recorded)
//   other slices   of a thread -> ranges of the host, unless the file has PyTorch's categories
//   correlation    by the arrows of the slices where no argument says it
// Counters, ftrace and every other kind of packet are not read.
#pragma once

#include "base/byte_source.h"
#include "traces/read_options.h"
#include "traces/trace.h"

namespace spillway::traces {

// Throws InputError (place: byte offset) for a damaged packet, one of more than 64 MiB, and a trace without any slice.
// Also for tracks with parents in a circle or deeper than 64, and for more than 65,536 slices open on one track. Does
// not derive. O(n log n).
Trace read_perfetto(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
