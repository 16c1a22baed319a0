#include "traces/formats/read.h"

#include <array>
#include <optional>
#include <string>

#include "base/input_error.h"
#include "traces/capture_fit.h"
#include "traces/derive.h"
#include "traces/formats/chakra_reader.h"
#include "traces/formats/execution_trace_reader.h"
#include "traces/formats/kineto/kineto_reader.h"
#include "traces/formats/nsys_reader.h"
#include "traces/formats/perfetto/perfetto_packet.h"
#include "traces/formats/perfetto/perfetto_reader.h"
#include "traces/formats/perfetto/rocprof_json_reader.h"
#include "traces/formats/recording.h"
#include "traces/formats/spillway_binary.h"
#include "traces/formats/spillway_json.h"
#include "traces/formats/torch_snapshot_reader.h"
#include "traces/size_check.h"

namespace spillway::traces {
namespace {

constexpr std::size_t look_ahead_bytes = 64 << 10;

constexpr std::array<std::string_view, 9> format_names = {"kineto",          "torch-snapshot", "execution-trace",
                                                          "chakra",          "nsys",           "perfetto",
                                                          "spillway-binary", "spillway-json",  "recording"};

std::string_view without_space(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// Of a file that starts like JSON. Keys can come in any order; what decides must be in the first 64 KiB, or else the
// file is taken for a Kineto trace with a long header.
TraceFormat detect_json(std::string_view head) {
  const auto holds = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (head.front() == '[') return TraceFormat::kineto;
  if (holds("\"spillway.trace\"")) return TraceFormat::spillway_json;
  if (holds("\"rocprofiler-sdk-tool\"")) return TraceFormat::perfetto;  // the same records
  if (holds("\"traceEvents\"")) return TraceFormat::kineto;
  if (holds("\"workload_graph\"")) return TraceFormat::chakra;
  if (holds("\"nodes\"") && holds("\"schema\"")) return TraceFormat::execution_trace;
  return TraceFormat::kineto;
}

// A Chakra file starts with the length of its first message, a varint, and that message: the schema's version (a
// string, tag 0x0a) or its first attribute (a message, tag 0x12). Either must fit into the first message.
bool looks_like_chakra(std::string_view head) {
  std::size_t length = 0, at = 0;
  for (; at < 3 && at < head.size(); ++at) {
    const auto byte = static_cast<unsigned char>(head[at]);
    length |= static_cast<std::size_t>(byte & 0x7fU) << (7 * at);
    if (byte < 0x80) break;
  }
  if (at + 2 >= head.size() || (head[at + 1] != 0x0a && head[at + 1] != 0x12)) return false;
  const auto inner = static_cast<unsigned char>(head[at + 2]);
  return inner < 0x80 && inner + std::size_t{2} <= length;
}

std::optional<TraceFormat> detect(ByteSource& source) {
  const auto bytes = source.peek(look_ahead_bytes);
  const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (raw.starts_with(spillway_binary_magic)) return TraceFormat::spillway_binary;
  if (raw.starts_with("SQLite format 3")) return TraceFormat::nsys;
  if (raw.size() > 2 && raw[0] == '\x80' && raw[1] >= 2 && raw[1] <= 5) return TraceFormat::torch_snapshot;
  // Before what looks past space: a Perfetto trace begins with a line feed.
  if (looks_like_perfetto(raw)) return TraceFormat::perfetto;
  const std::string_view text = without_space(raw);
  if (text.starts_with('[') && without_space(text.substr(1)).starts_with('[')) return std::nullopt;  // rows, no events
  if (!text.empty() && (text.front() == '{' || text.front() == '[')) return detect_json(text);
  if (looks_like_chakra(raw)) return TraceFormat::chakra;
  return std::nullopt;
}

bool is_archive(ByteSource& source) {
  constexpr std::size_t mark_at = 257;
  const auto bytes = source.peek(look_ahead_bytes);
  return bytes.size() > mark_at + 5 &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()) + mark_at, 5) == "ustar";
}

[[noreturn]] void fail_unknown(const std::string& path, ByteSource& source) {
  if (is_archive(source)) throw InputError(path, "", "is a tar archive", "unpack it and give the trace inside");
  throw InputError(path, "", "is in no format that can be read",
                   "give a Kineto JSON trace, a Perfetto trace, rocprofv3's JSON, a CUDA memory snapshot pickle, an "
                   "ExecutionTrace, a Chakra trace or an Nsight Systems SQLite export");
}

// Steps without times that a machine is named for: models/step/operator_list.h.
void refuse_operators(const std::string& path, ByteSource& source) {
  const auto bytes = source.peek(look_ahead_bytes);
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (head.find("\"spillway-operators\"") != std::string_view::npos)
    throw InputError(path, "", "is a list of operators, which has no times",
                     "run it on a machine: spillway run FILE --on h100");
}

bool is_json(ByteSource& source) {
  const auto bytes = source.peek(look_ahead_bytes);
  return without_space({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).starts_with('{');
}

// A Perfetto trace begins with a line feed, and may go on with what looks like JSON.
bool is_perfetto(ByteSource& source) {
  const auto bytes = source.peek(look_ahead_bytes);
  return looks_like_perfetto({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Trace read_stream(TraceFormat format, ByteSource& source, const ReadOptions& options) {
  switch (format) {
    case TraceFormat::kineto:
      return read_kineto(source, options);
    case TraceFormat::torch_snapshot:
      return read_torch_snapshot(source, options);
    case TraceFormat::execution_trace:
      return read_execution_trace(source, options);
    case TraceFormat::chakra:
      return is_json(source) ? read_chakra_json(source, options) : read_chakra(source, options);
    case TraceFormat::perfetto:
      return is_perfetto(source) ? read_perfetto(source, options) : read_rocprof_json(source, options);
    case TraceFormat::spillway_binary:
      return read_spillway_binary(source, options);
    case TraceFormat::spillway_json:
      return read_spillway_json(source, options);
    case TraceFormat::nsys:
    case TraceFormat::recording:
      break;  // read by path
  }
  fail_unknown(source.name(), source);
}

Trace derived(Trace trace) {
  check_sizes(trace);
  derive(trace);
  return trace;
}

Trace read_as(TraceFormat format, const std::string& path, ByteSource& source, const ReadOptions& options) {
  if (format == TraceFormat::kineto) refuse_operators(path, source);
  return derived(format == TraceFormat::nsys ? read_nsys(path, options) : read_stream(format, source, options));
}

TraceFormat format_of(const std::string& path, ByteSource& source) {
  const auto format = detect(source);
  if (!format) fail_unknown(path, source);
  return *format;
}

}  // namespace

std::string_view to_string(TraceFormat format) { return format_names[static_cast<std::size_t>(format)]; }

TraceFormat detect_format(const std::string& path) {
  if (is_recording(path)) return TraceFormat::recording;
  ByteSource source = ByteSource::open(path, look_ahead_bytes * 64);
  return format_of(path, source);
}

Trace read_unfitted(const std::string& path, const ReadOptions& options) {
  ByteSource source = ByteSource::open(path, options.max_decompressed_bytes, options.progress);
  return read_as(format_of(path, source), path, source, options);
}

Trace read_trace(const std::string& path, const ReadOptions& options) {
  if (is_recording(path)) return read_recording(path, options);
  ByteSource source = ByteSource::open(path, options.max_decompressed_bytes, options.progress);
  const TraceFormat format = format_of(path, source);
  Trace trace = read_as(format, path, source, options);
  // Own forms keep the fit they were written with; the other formats have no recorded times to fit to.
  if (format == TraceFormat::kineto || format == TraceFormat::nsys || format == TraceFormat::perfetto)
    fit_capture(trace);
  return trace;
}

}  // namespace spillway::traces
