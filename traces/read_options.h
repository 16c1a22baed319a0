// Options of every reader of trace files.
#pragma once

#include <cstdint>
#include <functional>

namespace spillway::traces {

struct ReadOptions {
  // Called about every 8 MiB of (decompressed) input with bytes read so far and the total on disk. Return
  // false to cancel: read_trace then throws Cancelled. Null: no reports.
  std::function<bool(std::uint64_t bytes_read, std::uint64_t bytes_total)> progress;
  // Input that decompresses to more than this is refused (zip bombs). Default 64 GiB.
  std::uint64_t max_decompressed_bytes = std::uint64_t{64} << 30;
  // Keep python_function events as spans. They are the bulk of traces with stacks; off by default.
  bool keep_python = false;
  // Keep the call stacks of memory snapshots (Trace::stack_frames): most of such a file. Off by default.
  bool keep_stacks = false;
};

}  // namespace spillway::traces
