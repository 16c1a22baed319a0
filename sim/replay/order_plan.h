// A new order of a trace's works, as a planner finds it, and the trace rewritten to it.
//
//   trace   [launch a]a [launch b]b [sync] [launch c]c        units, in the order the host issues them (host_order.h)
//   plan    b a sync c                                        the same units by their heads
//
// A unit moves as a whole: a host call with the works it launches, and before it what its thread did since the unit
// before that neither launches nor waits (kernel attributes, the dispatcher's own time). Its head is the first work, or
// the call where it launches none. Units of their own are also calls that wait or mark (synchronisations, events) and
// works without a launch. Units stay on their rank: the order of a trace of several ranks is one order for each of
// them, written one behind the other, and every rank keeps the order of its collectives, sends and receives, so that
// ranks can't come to wait for each other in a circle.
//
// Where a plan has fates too, these are of the trace in the program's order, and the order is made on what they leave:
// transfers and repeated ops travel with the unit they hang on (moved_fates()).
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

// Of ops, their lanes, names and uses; not of times, so that a plan holds on any machine.
std::uint64_t digest_of_works(const Trace& trace);
OrderPlan program_order(const Trace& trace);

struct Reordered {
  Trace trace;
  std::vector<OpId> moved;  // by op of the trace before: its id now
};

// The trace in the plan's order. Lanes keep their ops, whose columns and ids follow the new order, rank by rank. Host
// calls keep their durations and the pause before them; works with a launch lose their recorded starts, spans are left
// out (their times are of another run). A tensor's memory is allocated just before its first op and given back just
// after its last, but what is there before the first op, and what is never given back, stays so; the op that `fates`
// repeat others before uses what these read. Events of tensors no op uses keep their place between the n-th and the
// next unit of their rank. Where no memory event names a tensor, the events are made from the uses (storage_lives.h)
// and take the place of recorded ones. Every free is one event, free_requested.
//
// Throws InputError for traces without uses, for plans of another trace, and for orders that check_reordering()
// refuses: a read that would see another write, an edge or a wait broken, ranks that wait in a circle. O(n log n).
Reordered reorder(const Trace& trace, const OrderPlan& plan, const OffloadPlan* fates = nullptr);
Trace reordered(const Trace& trace, const OrderPlan& plan);

// The fates of `before` as those of the trace in its new order. The uses of a tensor before an absence stay before it:
// it leaves after the last of them, is stored after the last that writes, and is back before the first of the others;
// it is asked for where it was, but never before it has left nor after it must be back. Repeated ops use what they read
// where they are repeated. `after` is reorder()'s with these fates. Throws InputError for an order that moves a use
// past an absence of its tensor. O((trace + plan) log).
OffloadPlan moved_fates(const Trace& before, const Reordered& after, const OffloadPlan& fates);

}  // namespace spillway::sim
