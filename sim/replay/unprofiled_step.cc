#include "sim/replay/unprofiled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quantile.h"
#include "sim/replay/replay.h"
#include "traces/retime.h"

namespace spillway::sim {
namespace {

constexpr double most_speed = 20;
// What a step may be longer than the measured one, and than the shortest of its GPU work.
constexpr double near = 1.002;
constexpr int halvings = 10;
constexpr Picos longest_pause_within = microseconds(1);  // of rounding, before a call that waits for nothing

Result at_host_speed(const Trace& timing, const HardwareProfile& hardware, double speed) {
  ReplayOptions options;
  options.speed.host = speed;
  options.memory.allocator = ideal_policy;
  return replay(timing, hardware, options);
}

// Replays of time alone need no memory.
Trace times_alone(const Trace& trace) {
  Trace timing = trace;
  timing.memory_events.clear();
  timing.memory_segments.clear();
  timing.memory_blocks.clear();
  return timing;
}

bool is_sync(OpKind kind) {
  return kind == OpKind::device_sync || kind == OpKind::stream_sync || kind == OpKind::event_sync ||
         kind == OpKind::device_free;
}

bool is_timed_call(const Ops& ops, std::size_t i) {
  return is_host_call(ops.kind[i]) && ops.start[i] != unknown_time && ops.duration[i] != unknown_time;
}

std::vector<std::uint32_t> timed_calls(const Ops& ops) {
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < ops.size(); ++i)
    if (is_timed_call(ops, i)) calls.push_back(i);
  std::stable_sort(calls.begin(), calls.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ops.start[a] < ops.start[b]; });
  return calls;
}

// Calls and the pauses before them, each instant once; waits for the GPU are no work of the host.
Picos host_time(const Trace& trace) {
  const Ops& ops = trace.ops;
  const std::vector<std::uint32_t> calls = timed_calls(ops);
  Picos sum{}, end = calls.empty() ? Picos(0) : ops.start[calls.front()];
  for (const std::uint32_t i : calls) {
    const bool waits = is_sync(ops.kind[i]) || (ops.flags[i] & static_cast<std::uint8_t>(OpFlag::queue_blocked)) != 0;
    const Picos until = waits ? ops.start[i] : ops.start[i] + ops.duration[i];
    sum += std::max(Picos(0), until - end);
    end = std::max(end, ops.start[i] + ops.duration[i]);
  }
  return sum;
}

// As a profiler would have recorded the replay: what a call waits for is inside it, and no pause before it.
OpTimes times_of(Trace& trace, const Result& result, double speed) {
  Ops& ops = trace.ops;
  OpTimes times{std::vector<Picos>(ops.size(), unknown_time), std::vector<Picos>(ops.size(), unknown_time)};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (result.op_start[i] == unknown_time || result.op_end[i] == unknown_time) continue;
    times.start[i] = result.op_start[i];
    times.duration[i] = result.op_end[i] - result.op_start[i];
  }
  // The call of each rank that ended last so far, as it was recorded and as it is replayed.
  std::vector<std::pair<Picos, Picos>> last(trace.rank_count, {unknown_time, unknown_time});
  for (const std::uint32_t i : timed_calls(ops)) {
    auto& [recorded, replayed] = last[trace.lanes[index_of(ops.lane[i])].rank];
    if (times.start[i] == unknown_time) continue;
    const Picos end = result.op_end[i];
    if (recorded != unknown_time) {
      const Picos comes = replayed + std::max(Picos(0), scaled(ops.start[i] - recorded, speed));
      if (times.start[i] > comes + longest_pause_within) {
        times.start[i] = comes;
        times.duration[i] = end - comes;
        if (ops.kind[i] == OpKind::launch) ops.flags[i] |= static_cast<std::uint8_t>(OpFlag::queue_blocked);
      }
    }
    if (recorded == unknown_time || ops.start[i] + ops.duration[i] > recorded)
      std::tie(recorded, replayed) = std::pair(ops.start[i] + ops.duration[i], end);
  }
  return times;
}

}  // namespace

Picos unprofiled_step(const Trace& trace) {
  std::vector<double> steps;
  for (const StepTime& step : trace.unprofiled_steps) steps.push_back(static_cast<double>(step.duration.count()));
  return steps.empty() ? Picos(0) : Picos(static_cast<std::int64_t>(quantile(std::move(steps), 0.5)));
}

Trace at_unprofiled_speed(Trace trace, const HardwareProfile& hardware) {
  const Picos measured = unprofiled_step(trace);
  if (measured <= Picos(0) || !trace.has(Capability::times)) return trace;
  const Trace timing = times_alone(trace);
  const double goal = near * to_seconds(measured);
  const auto step_at = [&](double speed) { return to_seconds(at_host_speed(timing, hardware, speed).step_time); };
  if (step_at(1) <= goal) return trace;
  const double reachable = std::max(goal, near * step_at(most_speed));
  double low = 1, high = most_speed;
  for (int k = 0; k < halvings; ++k) {
    const double middle = std::sqrt(low * high);
    (step_at(middle) <= reachable ? high : low) = middle;
  }
  const Result result = at_host_speed(timing, hardware, high);
  retime(trace, times_of(trace, result, high));
  trace.note("profiler_host_time",
             fmt::format("host calls and pauses at {:.3g} of their recorded time: {:.3f} ms a step, {:.3f} measured",
                         1 / high, to_seconds(result.step_time) * 1e3, to_seconds(measured) * 1e3),
             "the host's times held the profiler, and are shortened to the step that was measured without one", false);
  return trace;
}

Picos estimated_unprofiled_step(const Trace& trace, const HardwareProfile& hardware) {
  if (!trace.has(Capability::times) || !trace.has(Capability::memory) || !trace.unprofiled_steps.empty())
    return Picos(0);
  const auto launched = std::count_if(trace.ops.launched_by.begin(), trace.ops.launched_by.end(),
                                      [](OpId by) { return by != OpId::none; });
  const double known = to_seconds(hardware.host.dispatch_cost.value) * static_cast<double>(launched);
  if (known <= 0 || to_seconds(host_time(trace)) <= known) return Picos(0);
  return at_host_speed(times_alone(trace), hardware, to_seconds(host_time(trace)) / known).step_time;
}

}  // namespace spillway::sim
