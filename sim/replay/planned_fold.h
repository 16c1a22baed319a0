// A folded step (traces/step_fold.h) under a plan: where the planned trace's periods lie, and which of its memory
// events come again. A plan's transfers, repeated ops and lives come again with the micro-batches or they don't;
// nothing here knows who planned them: what is not alike is refused.
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

// Of the planned trace of a step whose own fold is `step`: of each rank the longest stretch of periods of equally many
// ops. Memory events are not in it. None where there are fewer than three, or as many alike ones behind them. O(ops).
std::optional<StepFold> planned_fold(const PlannedTrace& planned, const StepFold& step);

struct FoldedOrder {
  StepFold fold;                  // with events, whose periods and `times` are the run's (PeriodicRun::period())
  std::vector<Picos> event_time;  // by event of the order, in the whole step
  const char* refused = nullptr;  // why no period's events come again at any time; then nothing else is known
};

// Puts the events in the order of `times`, as order_events() would, and gives their addresses anew, so that those of
// periods move along. times: by event, as replayed. O(events log events).
FoldedOrder fold_events(PlannedTrace& planned, const PeriodicRun& whole, const StepFold& fold,
                        std::span<const Picos> times);

}  // namespace spillway::sim
