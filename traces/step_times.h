// The times of one capture for the ops of another, of the same program. A profiler that records shapes, memory and
// stacks makes the host two to seven times slower; one that records kernels and operators alone hardly does.
//
//   full    step 15 |launch a|launch b|sync|  step 16 |...|      what is computed, what it touches
//   light   step 13 |a|b|sync|  step 14 |...|                    when
//   made    step 15 |a|b|sync|  step 16 |...|
//
// The last steps of both belong together; of fewer light ones the last is taken again. Within a step the k-th host call
// of a name is the other's k-th, and so are works of the GPU, in the order of their launches. Ops without a partner
// keep their duration and their place (traces/retime.h).
#pragma once

#include <optional>

#include "traces/trace.h"

namespace spillway::traces {

// How much of `full` was found in the other: device works and host calls within steps (all, where neither has steps).
struct StepMatch {
  std::size_t matched = 0, all = 0;
};

// None where less than nine of ten are found: then it is another program, or another step of it. Neither trace may have
// edges that were inferred from its times yet (traces/capture_fit.h). O(n log n).
std::optional<Trace> with_times_of(const Trace& full, const Trace& light, StepMatch& match);

}  // namespace spillway::traces
