#include "scenario/scenario_memory.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/parallel.h"
#include "scenario/drawn_run.h"
#include "scenario/reserve.h"
#include "sim/pictures/memory_snapshot.h"
#include "sim/replay/memory_replay.h"
#include "sim/replay/planned_trace.h"

namespace spillway::scenario {
namespace {

// What the run that the result shows was held to; 0: nothing.
Bytes replayed_limit(const MemoryResult& memory) { return memory.gives_back ? memory.limit : Bytes(0); }

}  // namespace

AllocationStreamOptions allocations_of(const LoadedScenario& loaded, const ScenarioRun& run,
                                       std::optional<std::int16_t> device) {
  const Result& result = run.result;
  MemoryReplayOptions memory = memory_options(loaded, run);
  if (result.memory.on_host) memory = {.allocator = std::string(ideal_policy)};
  return stream_options(memory, device.value_or(result.memory.device), replayed_limit(result.memory));
}

ScenarioRun run_memory(const LoadedScenario& loaded) {
  const Trace& trace = loaded.trace;
  if (std::none_of(trace.memory_events.begin(), trace.memory_events.end(),
                   [](const MemoryEvent& event) { return event.address != Addr(0); }))
    throw InputError(loaded.scenario.trace, "", "it has neither times to replay nor allocations with addresses",
                     "record with torch.cuda.memory._record_memory_history(), or a profiler's chrome trace");
  const std::vector<Picos> unknown(trace.memory_events.size(), Picos(0));
  ScenarioRun run =
      within_reserve(loaded, PlainReplayer(loaded.hardware, loaded.options), [&](const Replayer& replayer) {
        ScenarioRun once;
        once.result.memory = MemoryReplay(trace, replayer.options().memory).result(unknown);
        return once;
      });
  Result& result = run.result;
  result.title = loaded.scenario.title;
  result.warnings = loaded.warnings;
  result.provenance = loaded.provenance;
  MemoryResult& memory = result.memory;
  memory.timeline.clear();  // on no clock
  // What lived before the first event is there already: it can be too much without any allocation failing.
  const Bytes over = memory.peak_reserved - memory.limit;
  if (memory.verdict() != Verdict::unknown && !memory.out_of_memory && over > Bytes(0)) {
    memory.out_of_memory = true;
    memory.short_of = over;
  }
  return run;
}

std::vector<Picos> take_replayed_order(const LoadedScenario& loaded, ScenarioRun& run) {
  const Result& result = run.result;
  if (!run.planned) {
    if (result.op_start.empty()) return std::vector<Picos>(loaded.trace.memory_events.size(), Picos(0));
    return event_times(loaded.trace, {}, result.op_start, result.op_end);
  }
  PlannedTrace planned;
  planned.trace = std::move(*run.planned);
  planned.gate = std::move(run.gate);
  planned.gate.resize(planned.trace.memory_events.size(), OpId::none);  // of an order alone there are none
  std::vector<Picos> times = order_events(planned, result.op_start, result.op_end);
  run.planned = std::move(planned.trace);
  run.gate = std::move(planned.gate);
  return times;
}

PlacedAllocations placed_allocations(const LoadedScenario& loaded, ScenarioRun run) {
  const std::vector<Picos> times = take_replayed_order(loaded, run);
  const Trace& trace = run.trace(loaded);
  const MemoryReplayOptions memory = memory_options(loaded, run);
  PlacedAllocations placed{.policy = memory.allocator, .setting = memory.settings};
  std::vector<AllocationStreamResult> streams;
  for (const auto& [device, events] : index_memory_events(trace)) {
    if (device < 0) continue;
    AllocationStreamOptions options = stream_options(memory, device, replayed_limit(run.result.memory));
    options.keep_rows = options.keep_segments = options.keep_totals = true;
    streams.push_back(replay_allocation_stream(trace, events, options));
    placed.stitches += streams.back().stitches;
  }
  placed.trace = placed_snapshot(trace, streams, times);
  return placed;
}

std::vector<MemoryPicture> step_memory_on(const LoadedScenario& loaded, const ScenarioRun& run,
                                          std::span<const MemoryClock> clocks, std::optional<std::int16_t> device) {
  std::vector<MemoryPicture> pictures;
  if (!run.result.memory.known || clocks.empty()) return pictures;
  AllocationStreamOptions options = allocations_of(loaded, run, device);
  options.keep_rows = options.keep_totals = true;
  options.repeat = false;
  const Trace& trace = run.trace(loaded);
  const AllocationStreamResult stream = replay_allocation_stream(trace, options);
  const ReplayTimes times{run.result.op_start, run.result.op_end, run.gate};
  if (times.start.empty())
    pictures.push_back(memory_picture_on(trace, stream, {}, false, 0));
  else
    pictures.resize(clocks.size());
  in_parallel(times.start.empty() ? 0 : clocks.size(), [&](std::size_t i) {
    const bool timed = clocks[i] != MemoryClock::program;
    const std::int64_t end = timed ? end_of_drawn(run.result).count() : static_cast<std::int64_t>(trace.ops.size());
    pictures[i] = memory_picture_on(trace, stream, event_places(trace, times, clocks[i]), timed, end);
  });
  for (MemoryPicture& picture : pictures) {
    picture.title = run.result.title;
    picture.capacity = run.result.memory.capacity;
  }
  return pictures;
}

Result result_on_gpu_clock(const LoadedScenario& loaded, ScenarioRun run) {
  if (run.result.memory.timeline.empty()) return std::move(run.result);
  take_replayed_order(loaded, run);
  const std::vector<MemoryPicture> pictures = step_memory_on(loaded, run, std::array{MemoryClock::gpu});
  MemoryResult& memory = run.result.memory;
  memory.timeline.clear();
  Bytes peak{};
  for (const MemoryPicture::Point& point : pictures.front().curve) {
    const Picos at(point.at);
    if (memory.timeline.empty() || memory.timeline.back().time != at) memory.timeline.push_back({at, {}, {}});
    MemoryPoint& most = memory.timeline.back();  // within an instant
    most.allocated = std::max(most.allocated, point.allocated);
    most.reserved = std::max(most.reserved, point.reserved);
    if (point.allocated <= peak) continue;
    peak = point.allocated;
    memory.peak_time = at;
  }
  return std::move(run.result);
}

}  // namespace spillway::scenario
