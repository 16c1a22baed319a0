// A recorded CUDA program's activity, as the lines of a trace in the form that PyTorch's profiler writes (Chrome trace
// JSON with Kineto's categories and arguments), which traces/formats/kineto/kineto_reader.h reads.
//
//   head   {"traceEvents":[{...}
//   line   ,{...}                     one an event; a program that dies leaves whole lines, and the reader stops there
//   tail   ],"spillwayRecorder":{...}}
//
// Used by the library that is injected into the program; knows nothing of CUPTI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::validation {

struct RecordedCall {
  std::string_view name;  // "cudaLaunchKernel_v7000"
  bool is_driver = false;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint32_t process = 0, thread = 0, correlation = 0;
};

struct RecordedKernel {
  std::string_view name;  // demangled or not
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint32_t device = 0, stream = 0, correlation = 0, graph = 0;
};

enum class MemorySide : std::uint8_t { unknown, pageable, pinned, device, array, managed };

struct RecordedCopy {
  MemorySide from = MemorySide::unknown, to = MemorySide::unknown;
  bool is_peer = false;
  std::uint64_t start_ns = 0, end_ns = 0, bytes = 0;
  std::uint32_t device = 0, stream = 0, correlation = 0;
};

struct RecordedSet {
  std::uint64_t start_ns = 0, end_ns = 0, bytes = 0;
  std::uint32_t device = 0, stream = 0, correlation = 0;
};

enum class RecordedSyncKind : std::uint8_t { event, stream_wait, stream, context };
struct RecordedSync {
  RecordedSyncKind kind = RecordedSyncKind::stream;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint32_t stream = 0, correlation = 0;
  std::uint32_t recorded_by = 0;  // correlation of the cudaEventRecord waited for; 0 unknown
  std::uint32_t recorded_on = 0;  // its stream
};

struct ActivityMemory {
  bool is_release = false;
  std::uint64_t at_ns = 0, address = 0, bytes = 0;
  std::uint64_t held_bytes = 0;  // on the device after it
  std::uint32_t process = 0, device = 0, number = 0;
};

struct RecordedRange {  // NVTX
  std::string_view name;
  std::uint64_t start_ns = 0, end_ns = 0;
  std::uint32_t process = 0, thread = 0;
};

struct RecordedTail {
  std::uint64_t overhead_ns = 0;  // of the recording itself, as CUPTI says
  std::uint64_t dropped = 0;      // records that did not fit the buffers
};

// Each appends one line, its comma first. Names are made valid JSON whatever bytes they hold.
void append_head(std::string& out, std::uint32_t process);
void append(std::string& out, const RecordedCall& call);
void append(std::string& out, const RecordedKernel& kernel);
void append(std::string& out, const RecordedCopy& copy);
void append(std::string& out, const RecordedSet& set);
void append(std::string& out, const RecordedSync& sync);
void append(std::string& out, const ActivityMemory& memory);
void append(std::string& out, const RecordedRange& range);
void append_tail(std::string& out, const RecordedTail& tail);

}  // namespace spillway::validation
