// A trace as an order problem: units of its ops that move together (sim/replay/order_plan.h), the memory that passes
// between them, and what has to stay in front of what.
//
//   tensor with bytes   a storage, from the unit that uses it first to the last that does; one never given back is read
//                       by an operator "end" behind everything; what is there before the first op and stays is the
//                       constant
//   dependencies        data (from the last write to a read), in-place and parameter hazards (from the reads since, and
//                       the write before, to the next write), the trace's edges; works keep on their side of calls that
//                       wait for them, of events that mark them and of waits for events; steps don't mix
//
// Storages of other devices than the planned one have no bytes, nor has what the program frees but no op uses.
//
// With a plan's decisions (sim/replay/offload_plan.h) it is the memory that these leave. A storage with absences is a
// tensor for each stay between them, the later ones from the unit that asks for them. A unit also reads what ops
// repeated before it read; what they write is alive from it on. Uses stay on their side of an absence.
//
// A trace of several ranks is a graph for each of them. There, a rank's collectives, sends and receives keep their
// order; what it waits for of other ranks is left out, as these keep theirs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/order/order_graph.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/order_plan.h"
#include "traces/trace.h"

namespace spillway::planners {

struct TraceOrderGraph {
  OrderGraph graph;
  std::vector<OpId> heads;           // of the operators that are units; none for others
  std::uint64_t digest = 0;          // of the trace
  std::int16_t device = 0;           // the device of the memory counted; -1: the host
  std::uint64_t edges_left_out = 0;  // of the trace, against the order its ops are issued in
};

// By rank. `fates`: of this trace; null: none. Throws InputError without Capability::uses. O(n log n).
std::vector<TraceOrderGraph> order_graphs_of(const Trace& trace, const OffloadPlan* fates = nullptr);

// Appends an order of the graph's operators to the plan for its trace.
void add_order(const TraceOrderGraph& graph, std::span<const OperatorIndex> order, OrderPlan& plan);

}  // namespace spillway::planners
