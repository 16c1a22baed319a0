// Is a plan sound? Written apart from every planner and from the rewriting of traces: it looks at the traces alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/devices/memory/memory_plan.h"
#include "traces/trace.h"

namespace spillway::sim {

struct PlanVerdict {
  std::string fault;  // empty for a sound plan; else what is wrong, and with what
  [[nodiscard]] bool sound() const { return fault.empty(); }
};

// Does `after`, whose op moved[i] is op i of `before`, compute the same?
//   - the same ops: a permutation, each with its kind, name, lane, duration and launch, issued before its works
//   - each read of a storage sees the write it saw before, and writes to a storage keep their order
//   - edges lead forward; works stay on their side of calls that wait for the device, for a stream or a copy, of the
//     event that marks them, and of the wait for an event on their lane
//   - where `after` says when tensors are allocated: each use finds its tensor in memory
// O(n log n).
PlanVerdict check_reordering(const Trace& before, const Trace& after, std::span<const OpId> moved);

// Can the trace's requests on this device be placed as the plan says? Walks the memory events: every request that has a
// place is not larger than it, lies within the pool, and touches no other live one; no more than `capacity` bytes in
// all (0: any). For plans of kind layout; requests without a place are left out. O(n log n).
PlanVerdict check_placement(const Trace& trace, std::int16_t device, const MemoryPlan& plan, Bytes capacity);

}  // namespace spillway::sim
