// Opens any trace file, or a recording's folder: the format is found by content, never by name; plain, gzip or zstd.
#pragma once

#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "traces/read_options.h"
#include "traces/trace.h"

namespace spillway::traces {

enum class TraceFormat : std::uint8_t {
  kineto,           // Kineto / Chrome trace JSON
  torch_snapshot,   // torch.cuda.memory._dump_snapshot() pickle
  execution_trace,  // PyTorch ExecutionTraceObserver JSON
  chakra,           // Chakra ET protobuf
  nsys,             // Nsight Systems SQLite export
  perfetto,         // Perfetto protobuf (rocprofv3's .pftrace)
  spillway_binary,
  spillway_json,
  recording,  // a folder: traces/formats/recording.h
};
std::string_view to_string(TraceFormat format);

// Looks at the first bytes (after decompression). Throws InputError if nothing fits.
TraceFormat detect_format(const std::string& path);

// Reads, then derives what the format allows (traces/derive.h) and fits Kineto, Perfetto and Nsight captures to
// the machine they recorded (traces/capture_fit.h). Throws InputError; rows that can't be used are in Trace::findings.
// Linear in the file size.
Trace read_trace(const std::string& path, const ReadOptions& options = {});
// The same of a file, before it is fitted to its machine.
Trace read_unfitted(const std::string& path, const ReadOptions& options);

}  // namespace spillway::traces
