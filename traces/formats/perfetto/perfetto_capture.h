// Useful content of a Perfetto trace, decoded, before its meaning is known: tracks, slices, arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "traces/formats/kineto/kineto_rows.h"
#include "traces/trace.h"

namespace spillway::traces {

constexpr std::uint32_t no_perfetto_track = 0xffffffffU;

struct PerfettoTrack {
  std::uint64_t uuid = 0, parent = 0;  // parent 0: none
  std::uint64_t place = 0;             // of its description in the file, or of its first event
  std::optional<std::int64_t> process, thread, process_of_thread;
  StringId name{}, process_name{}, thread_name{};
  std::vector<std::uint32_t> open;  // slices begun, innermost last; the largest number for one that isn't kept
};

// Key of a value that is kept: the field of an event it fills, or one of these two of rocprofv3.
enum class PerfettoKey : std::uint8_t {
  source_agent = static_cast<std::uint8_t>(KinetoField::count_) + 1,
  target_agent,  // of a kernel, or where a copy goes
};

struct PerfettoValue {
  std::int64_t integer = 0;
  StringId text{};
  std::uint8_t key = 0;  // a KinetoField or a PerfettoKey
  bool is_text = false;
};

enum class PerfettoShape : std::uint8_t { open, slice, instant };

struct PerfettoSlice {
  std::int64_t start_ns = 0, duration_ns = 0;  // on the trace's clock
  std::uint64_t place = 0, flow = 0;           // flow 0: none
  std::uint32_t track = 0;
  std::uint32_t first_value = 0;  // of PerfettoCapture::values
  std::uint16_t values = 0;
  PerfettoShape shape = PerfettoShape::open;
  StringId name{}, category{};
};

struct PerfettoCapture {
  std::vector<PerfettoTrack> tracks;
  std::unordered_map<std::uint64_t, std::uint32_t> track_of;  // by uuid
  std::vector<PerfettoSlice> slices;                          // in order of their beginnings in the file
  std::vector<PerfettoValue> values;
};

}  // namespace spillway::traces
