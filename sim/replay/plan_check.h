// Is a plan sound? Written apart from every planner and from the rewriting of traces: it looks at the traces alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/devices/memory/memory_plan.h"
#include "traces/trace.h"

namespace spillway::sim {

struct PlanVerdict {
  std::string fault;       // empty for a sound plan; else what is wrong, and with what
  std::optional<Use> use;  // that didn't find its tensor in memory
  [[nodiscard]] bool sound() const { return fault.empty(); }
};

// Does `after`, with op i of `before` as its op moved[i], compute the same?
//   - the same ops: a permutation, each with its kind, name, lane, duration and launch, issued before its works
//   - each read of a storage sees the write it saw before, and writes to a storage keep their order
//   - edges within a rank lead forward; works stay on their side of calls that wait for the device, for a stream or a
//     copy, of the event that marks them, and of the wait for an event on their lane
//   - every rank of several has its collectives, sends and receives in the order they had, and no op waits for itself
//     by way of other ranks
//   - where `after` says when tensors are allocated: each use finds its tensor in memory
// O(n log n).
PlanVerdict check_reordering(const Trace& before, const Trace& after, std::span<const OpId> moved);

// Did a replay of a trace, with whatever transfers and repeated ops its plan put in, do what the trace allows?
//   - all device work ran, none before its launch or before the end of what an edge makes it wait for
//   - works of a stream ran one after another
//   - tensors whose memory the trace shows were there for each use by a kernel: taken before the kernel began, given
//   back not
//     before it was issued, and not while a transfer that the event waits for (gate, by memory event; empty: none) was
//     under way; not looked at for copies, as a step's own copies take and give back at other calls than their own
// op_start, op_end: by op, as replayed. O(n log n).
PlanVerdict check_replay(const Trace& trace, std::span<const OpId> gate, std::span<const Picos> op_start,
                         std::span<const Picos> op_end);

// Can the trace's requests on this device be placed as the plan says? Walks the memory events. Every request that has a
// place is not larger than it, lies within the pool, and touches no other live one. The pool takes no more than
// `capacity` bytes in all (0: any). For plans of kind layout; requests without a place are left out. O(n log n).
PlanVerdict check_placement(const Trace& trace, std::int16_t device, const MemoryPlan& plan, Bytes capacity);

}  // namespace spillway::sim
