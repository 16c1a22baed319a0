// A GPU's passes: consecutive device work of one micro-batch and phase is one pass. A pipeline's stages are read this
// way; of a step without stages, its phases.
//
//   streams   |f0 f0 f0|f1 f1 f1|......|b0 b0|b0|b1 ..      works of the rank's streams, copies too, not communication
//   passes    [0 forward][1 forward]   [0 backward ][1 ..   pauses up to 1/200 of the replay are part of a pass
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::studies {

struct Pass {
  std::int64_t begin = 0, end = 0;  // of the replay, picoseconds, half-open; passes of a rank do not overlap
  std::uint16_t micro_batch = no_index16;
  Phase phase = Phase::unknown;
};

// By rank, at least one; each ascending. O(ops log ops).
std::vector<std::vector<Pass>> passes_of(const Trace& trace, const Result& result);
// The trace numbers its micro-batches, and has more than one: their numbers say something.
bool has_micro_batches(const Trace& trace);
// "3 backward"; the number where has_micro_batches().
std::string pass_name(const Pass& pass, bool numbered);

}  // namespace spillway::studies
