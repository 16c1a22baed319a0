#include "validation/recorder/activity_lines.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace spillway::validation {
namespace {

// printf into a string; what is printed here is short.
template <class... Values>
void print(std::string& out, const char* format, Values... values) {
  std::array<char, 256> text{};
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  if (length > 0) out.append(text.data(), std::min(static_cast<std::size_t>(length), text.size() - 1));
}

// Bytes above 127 are written as the code points of Latin-1, so that any name is valid JSON.
void quote(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      print(out, "\\u%04x", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  out += '"';
}

void times(std::string& out, std::uint64_t start_ns, std::uint64_t end_ns) {
  const std::uint64_t lasted = end_ns > start_ns ? end_ns - start_ns : 0;
  print(out, ",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u", start_ns / 1000,
        static_cast<unsigned>(start_ns % 1000), lasted / 1000, static_cast<unsigned>(lasted % 1000));
}

void begin(std::string& out, const char* category, std::string_view name) {
  print(out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", category);
  quote(out, name);
}

void device_place(std::string& out, std::uint32_t device, std::uint32_t stream) {
  print(out, ",\"pid\":%u,\"tid\":%u", device, stream);
}

void device_arguments(std::string& out, std::uint32_t device, std::uint32_t stream, std::uint32_t correlation) {
  print(out, ",\"args\":{\"device\":%u,\"stream\":%u,\"correlation\":%u", device, stream, correlation);
}

const char* word(MemorySide side) {
  switch (side) {
    case MemorySide::pageable:
      return "Pageable";
    case MemorySide::pinned:
      return "Pinned";
    case MemorySide::device:
      return "Device";
    case MemorySide::array:
      return "Array";
    case MemorySide::managed:
      return "Managed";
    case MemorySide::unknown:
      return "Unknown";
  }
  return "Unknown";
}

bool on_host(MemorySide side) { return side == MemorySide::pageable || side == MemorySide::pinned; }

const char* direction(const RecordedCopy& copy) {
  if (copy.is_peer) return "PtoP";
  if (on_host(copy.from)) return on_host(copy.to) ? "HtoH" : "HtoD";
  return on_host(copy.to) ? "DtoH" : "DtoD";
}

const char* word(RecordedSyncKind kind) {
  switch (kind) {
    case RecordedSyncKind::event:
      return "Event Sync";
    case RecordedSyncKind::stream_wait:
      return "Stream Wait Event";
    case RecordedSyncKind::stream:
      return "Stream Sync";
    case RecordedSyncKind::context:
      return "Context Sync";
  }
  return "Context Sync";
}

}  // namespace

void append_head(std::string& out, std::uint32_t process) {
  print(out, "{\"schemaVersion\":1,\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,", process);
  out += "\"args\":{\"name\":\"recorded by spillway\"}}";
}

void append(std::string& out, const RecordedCall& call) {
  begin(out, call.is_driver ? "cuda_driver" : "cuda_runtime", call.name);
  print(out, ",\"pid\":%u,\"tid\":%u", call.process, call.thread);
  times(out, call.start_ns, call.end_ns);
  print(out, ",\"args\":{\"correlation\":%u}}", call.correlation);
}

void append(std::string& out, const RecordedKernel& kernel) {
  begin(out, "kernel", kernel.name);
  device_place(out, kernel.device, kernel.stream);
  times(out, kernel.start_ns, kernel.end_ns);
  device_arguments(out, kernel.device, kernel.stream, kernel.correlation);
  if (kernel.graph != 0) print(out, ",\"graph id\":%u", kernel.graph);
  out += "}}";
}

void append(std::string& out, const RecordedCopy& copy) {
  std::string name;
  print(name, "Memcpy %s (%s -> %s)", direction(copy), word(copy.from), word(copy.to));
  begin(out, "gpu_memcpy", name);
  device_place(out, copy.device, copy.stream);
  times(out, copy.start_ns, copy.end_ns);
  device_arguments(out, copy.device, copy.stream, copy.correlation);
  print(out, ",\"bytes\":%" PRIu64 "}}", copy.bytes);
}

void append(std::string& out, const RecordedSet& set) {
  begin(out, "gpu_memset", "Memset (Device)");
  device_place(out, set.device, set.stream);
  times(out, set.start_ns, set.end_ns);
  device_arguments(out, set.device, set.stream, set.correlation);
  print(out, ",\"bytes\":%" PRIu64 "}}", set.bytes);
}

void append(std::string& out, const RecordedSync& sync) {
  begin(out, "cuda_sync", word(sync.kind));
  device_place(out, 0, sync.stream);
  times(out, sync.start_ns, sync.end_ns);
  device_arguments(out, 0, sync.stream, sync.correlation);
  print(out, ",\"cuda_sync_kind\":\"%s\"", word(sync.kind));
  if (sync.recorded_by != 0)
    print(out, ",\"wait_on_stream\":%u,\"wait_on_cuda_event_record_corr_id\":%u", sync.recorded_on, sync.recorded_by);
  out += "}}";
}

void append(std::string& out, const ActivityMemory& memory) {
  print(out, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"s\":\"t\",\"pid\":%u,\"tid\":0",
        memory.process);
  print(out, ",\"ts\":%" PRIu64 ".%03u", memory.at_ns / 1000, static_cast<unsigned>(memory.at_ns % 1000));
  print(out, ",\"args\":{\"Device Type\":1,\"Device Id\":%u,\"Addr\":%" PRIu64 ",\"Bytes\":%s%" PRIu64, memory.device,
        memory.address, memory.is_release ? "-" : "", memory.bytes);
  print(out, ",\"Total Allocated\":%" PRIu64 ",\"Ev Idx\":%u}}", memory.held_bytes, memory.number);
}

void append(std::string& out, const RecordedRange& range) {
  begin(out, "user_annotation", range.name);
  print(out, ",\"pid\":%u,\"tid\":%u", range.process, range.thread);
  times(out, range.start_ns, range.end_ns);
  out += "}";
}

void append_tail(std::string& out, const RecordedTail& tail) {
  print(out, "\n],\"spillwayRecorder\":{\"overhead_ns\":%" PRIu64 ",\"dropped\":%" PRIu64 "}}\n", tail.overhead_ns,
        tail.dropped);
}

}  // namespace spillway::validation
