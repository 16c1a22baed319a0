// A Perfetto capture as the events of Chrome's JSON.
#pragma once

#include <string>

#include "traces/formats/kineto/kineto_rows.h"
#include "traces/formats/perfetto/perfetto_capture.h"

namespace spillway::traces {

// Who wrote it, as far as it shows.
enum class PerfettoWriter : std::uint8_t { other, torch, rocprof };

// Adds labels of processes and threads, then every slice, by the rules of perfetto_reader.h. `file` is for messages.
// Throws InputError when parents of tracks form a circle or lie too deep. O(n log n).
PerfettoWriter add_perfetto_events(const PerfettoCapture& capture, const std::string& file, Trace& trace,
                                   KinetoRows& rows);

}  // namespace spillway::traces
