// A scenario's allocations by themselves: for pictures and for what would have saved some.
#pragma once

#include <optional>

#include "scenario/scenario_run.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/replay/memory_picture.h"

namespace spillway::scenario {

// As the replay ran the device that needs most.
AllocationStreamOptions allocations_of(const LoadedScenario& loaded, const ScenarioRun& run);

// What a trace's memory events alone say, for files without times (memory snapshots): no figure of time is known.
// Throws InputError where the events have no addresses, so that nobody knows which blocks come back.
ScenarioRun run_memory(const LoadedScenario& loaded);

// Curve and map of what the step holds, on the replay's clock; runs the stream once more. None for a trace without
// memory events. O(events log events).
std::optional<MemoryPicture> step_memory(const LoadedScenario& loaded, const ScenarioRun& run);

}  // namespace spillway::scenario
