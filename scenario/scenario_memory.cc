#include "scenario/scenario_memory.h"

#include <algorithm>

namespace spillway::scenario {

AllocationStreamOptions allocations_of(const LoadedScenario& loaded, const Result& result) {
  MemoryReplayOptions memory = loaded.options.memory;
  if (result.memory.on_host) memory = {.allocator = std::string(ideal_policy)};
  return stream_options(memory, result.memory.device, Bytes(0));
}

std::optional<MemoryPicture> step_memory(const LoadedScenario& loaded, const ScenarioRun& run) {
  if (!run.result.memory.known) return std::nullopt;
  AllocationStreamOptions options = allocations_of(loaded, run.result);
  options.keep_rows = options.keep_totals = true;
  options.repeat = false;
  const Trace& trace = run.trace(loaded);
  MemoryPicture picture = memory_picture(trace, replay_allocation_stream(trace, options), run.result.op_start);
  // Steps that offload take events in another order than the program's: the replay's own curve is the one that counts.
  if (picture.timed && !run.result.memory.timeline.empty()) {
    picture.curve.clear();
    for (const MemoryPoint& point : run.result.memory.timeline)
      picture.curve.push_back({point.time.count(), point.allocated, point.reserved});
    picture.begin = std::min(picture.begin, picture.curve.front().at);
    picture.end = std::max(picture.end, picture.curve.back().at + 1);
  }
  picture.title = run.result.title;
  picture.capacity = run.result.memory.capacity;
  return picture;
}

}  // namespace spillway::scenario
