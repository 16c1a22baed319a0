// Kineto's Chrome trace JSON (torch.profiler), from the 2021 schema to today's; NVIDIA and AMD.
//
// Source of the format: pytorch/kineto, libkineto/src/output_json.cpp. One pass over the file; memory does not
// grow with what is skipped (flows, unknown arguments, python functions).
//
// What becomes what
//   cuda_runtime, cuda_driver   an op on the thread's lane. Calls that only ask or configure (cudaEventQuery,
//                               cudaGetDevice, ...) are no ops: their time stays in the gaps.
//   kernel, gpu_memcpy/memset   an op on the stream's lane, in order of the launches. Work without a launch record
//                               keeps its recorded place and is flagged missing_launch.
//   cpu_op, user_annotation     spans. Without device work and host calls (CPU-only captures) the outermost cpu_ops of
//                               each thread become host_work ops, so that the trace can be replayed.
//   [memory]                    memory events in (time, Ev Idx, file) order; sizes are block sizes (after rounding).
//   ProfilerStep#N              steps, from annotations of host threads only; gpu_user_annotation is ignored.
//   cuda_sync                   exact targets of the synchronising calls.
// Ops of one lane never overlap in a Trace. If recorded ones do (rounded clocks, nested calls, programmatic dependent
// launch), the later one is clipped to begin at the earlier one's end (findings "stream_overlap", "host_overlap").
//
// References of syncs, if cuda_sync events are absent (Sync::inferred), from the order of calls on a thread:
//   event record     the stream of the last work the thread launched before it
//   stream wait      the last record before it on the thread; the waiter is the stream of the next work that the
//                    thread launches, if that is another one
//   stream sync      the stream of the last work the thread launched
//   event sync       the last record before it on the thread
// An inference that the recorded times contradict (the waiter began before what it would wait for had ended) is
// dropped. References only ever point to earlier calls, so they can't form a cycle.
//
// Faults of real files are tolerated, each with a finding: control characters and invalid UTF-8 in strings, unescaped
// quotes, integers beyond 64 bit, a missing end. After a damaged event, reading resumes at the next one.
#pragma once

#include "base/byte_source.h"
#include "traces/read_options.h"
#include "traces/trace.h"

namespace spillway::traces {

// Throws InputError when the input is no Chrome trace at all or has no usable event; Cancelled by the source.
// Does not derive: see traces/derive.h. O(n log n) in the events kept.
Trace read_kineto(ByteSource& source, const ReadOptions& options);

}  // namespace spillway::traces
