// A Perfetto capture as the events of Chrome's JSON, and these as a trace.
#pragma once

#include <cstdint>
#include <optional>

#include "traces/formats/perfetto/perfetto_capture.h"

namespace spillway::traces {

// Adds labels of processes and threads, then every slice, by the rules of perfetto_reader.h, to `trace`, which has its
// provenance. `memory` counts what is made. `to_epoch`: nanoseconds that put the capture's clock on the wall clock.
// Throws InputError when parents of tracks form a circle or lie too deep. O(n log n).
void assemble_perfetto(PerfettoCapture capture, FileMemory& memory, bool keep_python,
                       std::optional<std::int64_t> to_epoch, Trace& trace);

}  // namespace spillway::traces
