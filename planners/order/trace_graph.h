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
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/order/order_graph.h"
#include "sim/replay/order_plan.h"
#include "traces/trace.h"

namespace spillway::planners {

struct TraceOrderGraph {
  OrderGraph graph;
  std::vector<OpId> heads;           // of the operators that are units; none for others
  std::uint64_t digest = 0;          // of the trace
  std::int16_t device = 0;           // whose memory is counted; -1: the host's
  std::uint64_t edges_left_out = 0;  // of the trace, against the order its ops are issued in
};

// Throws InputError without Capability::uses, or for several ranks. O(n log n).
TraceOrderGraph order_graph_of(const Trace& trace);

// An order of the graph's operators as a plan for the trace.
OrderPlan plan_of(const TraceOrderGraph& graph, std::span<const OperatorIndex> order);

}  // namespace spillway::planners
