#include "models/step/step_clock.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace spillway::models {
namespace {

using Part = StageProgram::Part;

void add(PowerLoad& load, const DrawingOp& one) {
  load.chip_joules += one.chip_joules;
  load.memory_joules += one.memory_joules;
  load.clocked_seconds += to_seconds(one.clocked);
}

void add(PowerLoad& load, const PowerLoad& more, double times) {
  load.chip_joules += more.chip_joules * times;
  load.memory_joules += more.memory_joules * times;
  load.clocked_seconds += more.clocked_seconds * times;
}

// Of a stretch that takes `seconds` as recorded, at the clock that durations are at.
double clock_of(PowerLoad load, double seconds, const CostModel& cost) {
  load.other_seconds = std::max(0.0, seconds - load.clocked_seconds);
  load.clocked_seconds *= cost.clock_share();
  return settled_clock(*cost.power(), load, cost.clock_share());
}

// Kernels take their clocked part `factor` times; starts of device work are laid out anew, as EagerSession::launch does
// it. Gives when the kernels' stream is done, by number of ops.
std::vector<Picos> stretch(Trace& trace, std::span<const DrawingOp> drawing, double factor, const GpuProfile& gpu) {
  Ops& ops = trace.ops;
  for (const DrawingOp& one : drawing)
    ops.duration[index_of(one.op)] += from_seconds(to_seconds(one.clocked) * (factor - 1));
  std::vector<Picos> clocks(trace.lanes.size()), done = {Picos(0)};
  const auto kernel = std::find_if(drawing.begin(), drawing.end(), [&](const DrawingOp& one) {
    return trace.lanes[index_of(ops.lane[index_of(one.op)])].kind == LaneKind::stream;
  });
  const LaneId stream = kernel == drawing.end() ? LaneId::none : ops.lane[index_of(kernel->op)];
  done.reserve(ops.size() + 1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpId call = ops.launched_by[i];
    if (call != OpId::none) {
      Picos& clock = clocks[index_of(ops.lane[i])];
      const bool blocks = (ops.flags[index_of(call)] & static_cast<std::uint8_t>(OpFlag::blocking)) != 0;
      const Picos called = ops.start[index_of(call)] + ops.duration[index_of(call)];
      ops.start[i] = std::max(blocks ? ops.start[i] : called + gpu.launch_to_start.value, clock + gpu.kernel_gap.value);
      clock = ops.start[i] + ops.duration[i];
    }
    done.push_back(stream == LaneId::none ? Picos(0) : clocks[index_of(stream)]);
  }
  return done;
}

// While the CPU updates the GPU waits, for many times the controller's window.
Picos update_on_host(const Trace& step) {
  Picos time{};
  for (std::size_t i = 0; i < step.ops.size(); ++i)
    if (step.ops.kind[i] == OpKind::host_work && step.ops.phase[i] == Phase::optimizer &&
        step.ops.lane[i] == step.ops.lane.front())
      time += step.ops.duration[i];
  return time;
}

std::int64_t in_thousandths(double value) { return std::llround(value * 1e3); }
std::int64_t in_millionths(double value) { return std::llround(value * 1e6); }

DevicePower device_power(const GpuPower& power, double clock) {
  return {.clock_millionths = in_millionths(clock),
          .idle_milliwatts = in_thousandths(power.idle_watts),
          .limit_milliwatts = in_thousandths(power.limit_watts)};
}

std::span<const DrawingOp> within(std::span<const DrawingOp> drawing, const StageProgram::Section& section) {
  const auto before = [](const DrawingOp& one, std::size_t op) { return index_of(one.op) < op; };
  const auto first = std::lower_bound(drawing.begin(), drawing.end(), section.begin.ops, before);
  return {first, std::lower_bound(first, drawing.end(), section.end.ops, before)};
}

PowerLoad load_of(std::span<const DrawingOp> drawing) {
  PowerLoad load;
  for (const DrawingOp& one : drawing) add(load, one);
  return load;
}

// One micro-batch through all chunks of the stage.
PowerLoad usual_load(const StageProgram& program, std::span<const DrawingOp> drawing) {
  PowerLoad load;
  for (std::int64_t chunk = 0; chunk < static_cast<std::int64_t>(program.chunks.size()); ++chunk) {
    const std::int64_t usual = std::max<std::int64_t>(program.chunks[static_cast<std::size_t>(chunk)].recorded - 2, 0);
    for (std::int64_t slice = 0; slice < program.slices; ++slice)
      for (const Part part : {Part::forward, Part::recompute, Part::backward, Part::weights})
        for (const DrawingOp& one : within(drawing, program.sections[program.section(chunk, usual, slice, part)]))
          add(load, one);
  }
  return load;
}

double usual_seconds(const StageProgram& program, const GpuProfile& gpu) {
  Ticks time = 0;
  for (std::int64_t chunk = 0; chunk < static_cast<std::int64_t>(program.chunks.size()); ++chunk) {
    const PassTimes passes = pass_times(program, chunk, gpu);
    time += passes.forward + passes.backward() + passes.recompute;
  }
  return to_seconds(Picos(time));
}

}  // namespace

void settle_clock(StageProgram& program, std::span<const DrawingOp> drawing, const CostModel& cost) {
  if (cost.power() == nullptr) return;
  const double clock = clock_of(usual_load(program, drawing), usual_seconds(program, cost.gpu()), cost);
  program.power = device_power(*cost.power(), clock);
  for (StageProgram::Section& section : program.sections)
    section.joules = work_joules(*cost.power(), load_of(within(drawing, section)), clock);
  if (clock >= cost.clock_share()) return;
  const std::vector<Picos> done = stretch(program.trace, drawing, cost.clock_share() / clock, cost.gpu());
  for (StageProgram::Section& section : program.sections)
    for (TraceMark* mark : {&section.begin, &section.end}) mark->stream = done[mark->ops];
}

void settle_clock(Trace& step, const RepeatedDrawing& drawing, Picos duration, const CostModel& cost) {
  if (cost.power() == nullptr || step.steps.empty()) return;
  PowerLoad load = load_of(drawing.before);
  add(load, load_of(drawing.repeated), static_cast<double>(drawing.times));
  add(load, load_of(drawing.after), 1);
  const double clock = clock_of(load, to_seconds(duration - update_on_host(step)), cost);
  DevicePower& power = step.powers.emplace_back(device_power(*cost.power(), clock));
  power.work_microjoules = in_millionths(work_joules(*cost.power(), load, clock));
  if (clock >= cost.clock_share()) return;
  const std::vector<Picos> done = stretch(step, drawing.shown, cost.clock_share() / clock, cost.gpu());
  Step& whole = step.steps.back();
  whole.duration = std::max(whole.duration, done.back() - whole.start);
}

}  // namespace spillway::models
