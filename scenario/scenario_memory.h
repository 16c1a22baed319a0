// A scenario's allocations by themselves: for pictures and for what would have saved some.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scenario/scenario_run.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/pictures/memory_clock.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::scenario {

// As the replay ran the device that needs most.
AllocationStreamOptions allocations_of(const LoadedScenario& loaded, const ScenarioRun& run);

// What a trace's memory events alone say, for files without times (memory snapshots): no figure of time is known.
// Throws InputError where the events have no addresses, so that nobody knows which blocks come back.
ScenarioRun run_memory(const LoadedScenario& loaded);

// Curve and map of what the step holds, on the replay's clock; runs the stream once more. None for a trace without
// memory events. O(events log events).
std::optional<MemoryPicture> step_memory(const LoadedScenario& loaded, const ScenarioRun& run);
// Puts the memory events of a step that moves tensors in the order in which its replay's allocator saw them.
void take_replayed_order(ScenarioRun& run);
// The same on other clocks, one picture for each of them, to the end of the replay. Of a trace without times one alone,
// event by event, whatever is asked for. Runs the stream once.
// Precondition: take_replayed_order(run).
std::vector<MemoryPicture> step_memory_on(const LoadedScenario& loaded, const ScenarioRun& run,
                                          std::span<const MemoryClock> clocks);

}  // namespace spillway::scenario
