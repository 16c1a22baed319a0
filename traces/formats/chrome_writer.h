// Writes a Trace as a Chrome trace (JSON) that Perfetto and chrome://tracing open, and read_kineto reads back.
//
//   rank -> two processes: host threads, and one per GPU with its streams; names as metadata events
//   op -> "X" event in Kineto's categories (cuda_runtime, kernel, gpu_memcpy, gpu_memset, ...), with correlation
//   launch -> kernel: flow "s"/"f" of category ac2g      span -> "X" event (cpu_op, user_annotation)
//   memory events -> counters "allocated bytes" and, where it is known, "reserved bytes" per device
//   copies and transfers -> the tensor that they move, as an argument
//
// ts and dur are microseconds with as many decimals as picoseconds need, so nothing is rounded. An op without a start
// or duration can't be drawn: it is left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "traces/trace.h"

namespace spillway::traces {

// A curve beside the ops, which holds each value until the next.
struct ChromeCounter {
  std::string name, unit;  // "PCIe to GPU", "bytes_per_second"
  std::uint16_t rank = 0;
  std::vector<std::int64_t> at;  // picoseconds, ascending
  std::vector<double> value;     // as many
};

// Does not commit. O(n).
void write_chrome_trace(const Trace& trace, OutputFile& out);
// With curves beside it.
void write_chrome_timeline(const Trace& trace, std::span<const ChromeCounter> counters, OutputFile& out);

}  // namespace spillway::traces
