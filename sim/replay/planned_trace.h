// A trace under an OffloadPlan: transfers and repeated ops put in, lifetimes of storages cut.
//
//   store   op of kind storage_write (copy_device_to_host) on a transfer lane: starts when its writer has ended and the
//           host has launched it; FIFO over store_workers. The memory goes when the store has ended and the last op
//           that uses it has been launched, which is when an eager framework drops its handle; that of a forwarded
//           tensor not before its store has ended, whatever the program does.
//   load    storage_read (copy_host_to_device): asked for by the host just before it launches fetch_at; its memory is
//           taken when a worker begins it; the host launches back_before only when it has ended.
//   again   repeated ops, phase recompute, launched just before `before`; the host launches one only when the loads
//           before it of what it reads have ended.
//
// After its return a storage has the same TensorId and another address.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/offload_plan.h"
#include "sim/replay/transfer_lane.h"
#include "traces/trace.h"

namespace spillway::sim {

struct PlannedTrace {
  Trace trace;
  std::vector<TransferLane> lanes;  // of the plan's transfers
  std::vector<OpId> source;         // by op: the op it is, or repeats, in the original; none for transfers
  std::vector<OpId> transfer;       // by absence: its store; none when it has none
  std::vector<OpId> fetch;          // by absence: its load; none when it has none
  std::vector<OpId> asked;  // by absence, also forwarded: the op that ends when it is asked for; none: at once or never
  std::vector<OpId> gate;   // by memory event: it also waits for the end of this op; none: for nothing
  std::string drives;       // as OffloadPlan::drives

  [[nodiscard]] const TransferLane* lane_of(LaneId lane) const;  // null: no transfer lane
};

// Throws InputError when the plan doesn't fit the trace: ids out of range, a storage without an allocation, ends of an
// absence in the wrong order, tiers that overlap. O((trace + plan) log).
PlannedTrace planned_trace(const Trace& trace, const OffloadPlan& plan);

// The trace with its memory events in the order of their times in a replay of it, which is the one its allocator sees;
// gate and transfers as before. Gives the times, ascending. O(events log events).
std::vector<Picos> order_events(PlannedTrace& planned, std::span<const Picos> op_start, std::span<const Picos> op_end);
// Its two parts: when each event happens, with a host thread's in the order of its calls; and the order of these times.
std::vector<Picos> ordered_event_times(const PlannedTrace& planned, std::span<const Picos> op_start,
                                       std::span<const Picos> op_end);
std::vector<Picos> sort_events(PlannedTrace& planned, std::vector<Picos> times);

// When each memory event happens in a replay that gave these times. Anchored to a host call: at its start, as the
// recording says how much later, or as much sooner as the call is shorter. Anchored to a load: at its start. Never
// before its gate's end. O(events).
std::vector<Picos> event_times(const Trace& trace, std::span<const OpId> gate, std::span<const Picos> op_start,
                               std::span<const Picos> op_end);

}  // namespace spillway::sim
