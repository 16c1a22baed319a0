// Writes a Trace as a Chrome trace (JSON) that Perfetto and chrome://tracing open, and read_kineto reads back.
//
//   rank -> two processes: host threads, and one per GPU with its streams; names as metadata events
//   op -> "X" event in Kineto's categories (cuda_runtime, kernel, gpu_memcpy, gpu_memset, ...), with correlation
//   launch -> kernel: flow "s"/"f" of category ac2g      span -> "X" event (cpu_op, user_annotation)
//   memory events -> counter "allocated bytes" per device
//
// ts and dur are microseconds with as many decimals as picoseconds need, so nothing is rounded. An op without a start
// or duration can't be drawn: it is left out.
#pragma once

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// Does not commit. O(n).
void write_chrome_trace(const Trace& trace, OutputFile& out);

}  // namespace spillway::traces
