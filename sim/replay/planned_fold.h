// A folded step (traces/step_fold.h) under a plan: the planned trace's periods, and its memory events that come again.
// A plan's transfers, repeated ops and lifetimes come again with the micro-batches or they don't. Nothing here knows
// who planned them: what is not alike is refused.
//
//   events of a rank, by time   | before | piece | after |
//                                        '- one period, the last of those alone: put in as often as the periods
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/replay/periodic_run.h"
#include "sim/replay/planned_trace.h"
#include "traces/step_fold.h"

namespace spillway::sim {

// Fold of a step's planned trace; `step` is the fold of the step itself. Takes the longest run of periods of equally
// many ops on each rank. Memory events are not in it. None if there are fewer than three, or three alike ones behind
// them. O(ops).
std::optional<StepFold> planned_fold(const PlannedTrace& planned, const StepFold& step);

struct FoldedOrder {
  StepFold fold;                  // with events; its periods and `times` are the run's (PeriodicRun::period())
  std::vector<Picos> event_time;  // by event of the order, in the whole step
  const char* refused = nullptr;  // why no period's events come again at any time; then nothing else is known
};

// Puts the events in the order of `times`, as order_events() would, and gives them new addresses, so that those of
// periods move along. times: by event, as replayed. O(events log events).
FoldedOrder fold_events(PlannedTrace& planned, const PeriodicRun& whole, const StepFold& fold,
                        std::span<const Picos> times);

}  // namespace spillway::sim
