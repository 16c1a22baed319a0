// What recorded stages say of their passes: time and memory.
#include <algorithm>
#include <string_view>
#include <vector>

#include "models/step/stage_program.h"

namespace spillway::models {
namespace {

using Part = StageProgram::Part;

// The recorded micro-batch that most are copies of.
template <class Value>
std::int64_t sum_over_slices(const StageProgram& program, std::int64_t chunk, Part part, Value&& value) {
  const std::int64_t recorded = program.chunks[static_cast<std::size_t>(chunk)].recorded;
  std::int64_t sum = 0;
  for (std::int64_t slice = 0; slice < program.slices; ++slice)
    sum += value(program.sections[program.section(chunk, std::max<std::int64_t>(recorded - 2, 0), slice, part)]);
  return sum;
}

// Exchanges that the stage's kernels wait for; others (of gradients, of weights, between stages) run beside it.
bool is_of_pass(const Trace& trace, const Lane& lane) {
  const std::string_view name = trace.strings.text(lane.name);
  return name == to_string(CommGroup::tensor) || name == to_string(CommGroup::context) ||
         name == to_string(CommGroup::expert);
}

// Lanes run beside each other; within one, in order; an op starts when what it waits for in the section has ended.
// O(ops + edges of the section).
Ticks time_of(const StageProgram& program, const StageProgram::Section& section, const GpuProfile& gpu) {
  const Trace& trace = program.trace;
  const Ops& ops = trace.ops;
  std::vector<Picos> clocks(trace.lanes.size()), ends(section.end.ops - section.begin.ops);
  Picos device{};
  std::size_t edge = section.begin.edges;
  for (std::size_t i = section.begin.ops; i < section.end.ops; ++i) {
    Picos start{};
    for (; edge < section.end.edges && index_of(trace.edges[edge].to) == i; ++edge) {
      const std::size_t from = index_of(trace.edges[edge].from);
      if (from >= section.begin.ops) start = std::max(start, ends[from - section.begin.ops]);
    }
    if (is_host_call(ops.kind[i])) continue;
    const std::size_t lane = index_of(ops.lane[i]);
    const bool is_stream = trace.lanes[lane].kind == LaneKind::stream;
    Picos& end = ends[i - section.begin.ops] = start;
    if (!is_stream && !is_of_pass(trace, trace.lanes[lane])) continue;
    end = clocks[lane] = std::max(start, clocks[lane]) + ops.duration[i] + (is_stream ? gpu.kernel_gap.value : Picos{});
    device = std::max(device, end);
  }
  return std::max(device, section.end.host - section.begin.host).count();
}

}  // namespace

PassTimes pass_times(const StageProgram& program, std::int64_t chunk, const GpuProfile& gpu) {
  const auto time = [&](Part part) {
    return sum_over_slices(program, chunk, part,
                           [&](const StageProgram::Section& section) { return time_of(program, section, gpu); });
  };
  return {time(Part::forward), time(Part::backward), time(Part::weights), time(Part::recompute)};
}

std::int64_t bytes_kept(const StageProgram& program, std::int64_t chunk, Part part) {
  return sum_over_slices(program, chunk, part, [&](const StageProgram::Section& section) {
    std::int64_t kept = 0;
    for (std::size_t i = section.begin.memory_events; i < section.end.memory_events; ++i) {
      const MemoryEvent& event = program.trace.memory_events[i];
      if (program.trace.tensors.role[index_of(event.tensor)] == TensorRole::gradient) continue;
      if (event.action == MemoryAction::allocate) kept += event.bytes.count();
      if (event.action == MemoryAction::free_requested) kept -= event.bytes.count();
    }
    return kept;
  });
}

std::int64_t weight_part(const StageProgram& program, std::int64_t chunk) {
  const std::int64_t whole = bytes_kept(program, chunk, Part::forward) + bytes_kept(program, chunk, Part::recompute);
  if (whole <= 0) return 1'000'000;
  const double left = static_cast<double>(whole + bytes_kept(program, chunk, Part::backward));
  return static_cast<std::int64_t>(std::clamp(left / static_cast<double>(whole), 0.0, 1.0) * 1e6);
}

}  // namespace spillway::models
