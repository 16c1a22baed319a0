// A scenario's allocations by themselves: for pictures and for what would have saved some.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenario/scenario_run.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/pictures/memory_clock.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::scenario {

// As the replay ran a device; none: the one that needs most.
AllocationStreamOptions allocations_of(const LoadedScenario& loaded, const ScenarioRun& run,
                                       std::optional<std::int16_t> device = {});

// The run of a trace's memory events alone, for files without times (memory snapshots): no figure of time is known.
// Throws InputError where the events have no addresses, so that nobody knows which blocks come back.
ScenarioRun run_memory(const LoadedScenario& loaded);

// Puts the memory events of a step that moves tensors in the order in which its replay's allocator saw them. Returns
// their times: then ascending, for other steps as event_times() has them.
std::vector<Picos> take_replayed_order(const LoadedScenario& loaded, ScenarioRun& run);
struct PlacedAllocations {
  Trace trace;                  // see placed_snapshot()
  std::string policy, setting;  // of the allocator, as MemoryReplayOptions has them
  std::uint64_t stitches = 0;   // gmlake: blocks made of pieces of several segments, which lie in none of them
};
// A step's own allocations where the allocator placed them, of every GPU, on the replay's clock. Their peaks are those
// of the result. Runs the streams once more. O(events log events).
PlacedAllocations placed_allocations(const LoadedScenario& loaded, ScenarioRun run);
// The same on other clocks, one picture for each of them, to the end of the replay. A trace without times gives one
// picture, event by event, whatever is asked for. Shows one device; none: the one that needs most. Runs its stream
// once. Precondition: take_replayed_order(loaded, run).
std::vector<MemoryPicture> step_memory_on(const LoadedScenario& loaded, const ScenarioRun& run,
                                          std::span<const MemoryClock> clocks, std::optional<std::int16_t> device = {});
// The result with its memory curve on the GPU's clock, not on the host's, which asks far ahead of it. Pictures and
// reports of a step show it. Peaks don't change. Runs the stream once more.
Result result_on_gpu_clock(const LoadedScenario& loaded, ScenarioRun run);

}  // namespace spillway::scenario
