// Fidelity: whether a capture, replayed on its own timings, takes as long as it did, and what is missing in it if not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/result.h"

namespace spillway::sim {

// A replay further off than this, and a step of which more than this is unexplained, are said in the first line.
inline constexpr double largest_good_error = 0.01;
inline constexpr double largest_good_share = 0.05;
// The same of a step against those measured without a profiler.
inline constexpr double largest_unprofiled_error = 0.05;

// Rows for the unexplained time that a trace keeps (traces/capture_fit.h). `on_path`: what of it the critical path
// holds, by op. Most on the path first, then longest. O(n log n) in such times.
std::vector<KeptIdle> kept_idle(const Trace& trace, std::span<const std::pair<OpId, Picos>> on_path);

// `own`: the replay of `trace` on its own timings, without a plan. None when no step has recorded times.
std::optional<Fidelity> fidelity_of(const Trace& trace, const Result& own);

// Warnings before the figures: the replay is off, or much of the step is unexplained, with the cause. `result` may be a
// what-if; the unexplained part is its own. Empty: all is well, or nothing was recorded.
std::vector<std::string> fidelity_warnings(const Result& result);

}  // namespace spillway::sim
