// Puts Kineto's rows in order as a Trace: lanes, launches, nesting, steps, syncs, memory.
#pragma once

#include "traces/formats/kineto/kineto_rows.h"
#include "traces/trace.h"

namespace spillway::traces {

// Consumes the rows. Times become relative to the earliest one; returns that instant in picoseconds since the
// rows' origin, a whole number of microseconds. The rules are those of traces/formats/kineto/kineto_reader.h.
Picos assemble_kineto(KinetoRows& rows, Trace& trace);

// Fills Trace::syncs. `recorded` come from cuda_sync events; `op_of` finds the host op of a correlation id in pairs
// sorted by that id. Host ops precede device ops and are in order of start.
struct KinetoCallOfCorrelation {
  std::int64_t correlation = -1;
  std::uint32_t op = 0;
  friend auto operator<=>(const KinetoCallOfCorrelation&, const KinetoCallOfCorrelation&) = default;
};
void resolve_kineto_syncs(const std::vector<KinetoSyncRow>& recorded, const std::vector<KinetoCallOfCorrelation>& op_of,
                          std::size_t host_op_count, Trace& trace);

}  // namespace spillway::traces
