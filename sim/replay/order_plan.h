// A new order of a trace's works, as a planner finds it, and the trace rewritten to it.
//
//   trace   [launch a]a [launch b]b [sync] [launch c]c        units, in the order the host issues them (host_order.h)
//   plan    b a sync c                                        the same units by their heads
//
// A unit moves as a whole. It is a host call with the works it launches, and before it the calls of its thread that
// neither launch nor wait (kernel attributes, the dispatcher's own time). Its head is the first work, or the call if it
// launches none. Calls that wait or mark (synchronisations, events) and works without a launch are also units. Units
// stay on their rank. The order of a trace of several ranks is one order for each of them, written one behind the
// other. Every rank keeps the order of its collectives, sends and receives, so that ranks can't wait for each other in
// a circle.
//
// A plan's `fates` are of the trace in the program's order, and the order is made on the trace that they leave.
// Transfers and repeated ops travel with the unit they hang on (moved_fates()).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/offload_plan.h"
#include "traces/trace.h"

namespace spillway::sim {

struct OrderUnits {
  std::vector<OpId> ops;             // unit by unit, rank by rank
  std::vector<std::uint32_t> begin;  // of each unit in ops, and the end
  std::vector<OpId> heads;           // of each unit

  [[nodiscard]] std::size_t size() const { return heads.size(); }
  [[nodiscard]] std::span<const OpId> of(std::size_t unit) const {
    return {ops.data() + begin[unit], ops.data() + begin[unit + 1]};
  }
};
// Every op is in exactly one. O(n log n).
OrderUnits order_units(const Trace& trace);

struct OrderPlan {
  std::uint64_t digest = 0;  // of the trace it is for: digest_of_works()
  std::vector<OpId> order;   // heads of all units; those of different ranks in any order
  std::string technique{};   // who made it; for people
};

// Covers ops, their lanes, names and uses; not times, so that a plan holds on any machine.
std::uint64_t digest_of_works(const Trace& trace);
OrderPlan program_order(const Trace& trace);

struct Reordered {
  Trace trace;
  std::vector<OpId> moved;  // by op of the trace before: its id now
};

// The trace in the plan's order. Lanes keep their ops; columns and ids of the ops follow the new order, rank by rank.
// Host calls keep their durations and the pause before them. Works with a launch lose their recorded starts; spans are
// left out (their times are of another run). A tensor's memory is allocated just before its first op and given back
// just after its last. Memory that is there before the first op, or never given back, stays so. The op that `fates`
// repeat others before uses the tensors that these read. Events of tensors no op uses keep their place between the n-th
// and the next unit of their rank. If no memory event names a tensor, the events are made from the uses
// (storage_lives.h) and take the place of recorded ones. Every free is one event, free_requested.
//
// Throws InputError for traces without uses, for plans of another trace, and for orders that check_reordering()
// refuses. These are a read that would see another write, an edge or a wait broken, ranks that wait in a circle. O(n
// log n).
Reordered reorder(const Trace& trace, const OrderPlan& plan, const OffloadPlan* fates = nullptr);
Trace reordered(const Trace& trace, const OrderPlan& plan);

// The `fates` of `before` as those of the trace in its new order. The uses of a tensor before an absence stay before
// it. It leaves after the last of them, is stored after the last that writes, and is back before the first of the
// others. It is asked for where it was, but never before it has left nor after it must be back. Repeated ops use what
// they read where they are repeated. `after` is reorder()'s with these `fates`. Throws InputError for an order that
// moves a use past an absence of its tensor. O((trace + plan) log).
OffloadPlan moved_fates(const Trace& before, const Reordered& after, const OffloadPlan& fates);

}  // namespace spillway::sim
