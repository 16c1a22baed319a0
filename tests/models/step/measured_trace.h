// What tests of generated traces measure: flops and kernels by name, and memory where one phase gives way to the next.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/step/trace_generator.h"

namespace spillway::models {

// Machines of eight; a collective takes a nanosecond and a picosecond a byte, whatever its group.
inline Cluster flat_cluster() {
  return {8, [](NetworkCollective, Bytes bytes, const GroupShape&) { return Picos(1000 + bytes.count()); }};
}

inline std::int64_t flops_of(const Trace& trace, Phase phase) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.phase[i] == phase) sum += trace.ops.flops[i].count();
  return sum;
}

inline std::int64_t count_of(const Trace& trace, std::string_view name) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) count += trace.strings.text(trace.ops.name[i]) == name ? 1 : 0;
  return count;
}

// Bytes of one GPU. before: live when the step begins, without its input; kept: added when the forward ends;
// before_optimizer: live when the backward ends; left: added at the end of the trace.
struct HeldBytes {
  std::int64_t before = 0, kept = 0, before_optimizer = 0, left = 0;
};

inline HeldBytes memory_of(const Trace& trace, std::int16_t device = 0) {
  HeldBytes held;
  std::int64_t live = 0, after = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action == MemoryAction::free_completed || event.device != device) continue;
    const Phase phase = event.anchor == OpId::none ? Phase::unknown : trace.ops.phase[index_of(event.anchor)];
    const std::size_t tensor = index_of(event.tensor);
    const bool of_optimizer = trace.strings.text(trace.tensors.name[tensor]).starts_with("optimizer.");
    live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
    const TensorRole role = trace.tensors.role[tensor];  // a later stage of a pipeline begins with receiving
    if (phase == Phase::unknown && role != TensorRole::input && role != TensorRole::activation) held.before = live;
    if (phase <= Phase::forward) after = live;
    if (phase == Phase::backward && !of_optimizer) held.before_optimizer = live;
  }
  held.kept = after - held.before;
  held.left = live - held.before;
  return held;
}

}  // namespace spillway::models
