// The ideal policy: what a step would need if placement were free. Every block is exactly as large as asked for,
// reserved equals active, and the only limit is the capacity. A lower bound for every other policy.
//
// Addresses are virtual and never reused, 512-byte aligned: no fragmentation by construction. Every block counts as a
// segment of the large pool.
#pragma once

#include <span>
#include <string_view>

#include "sim/devices/memory/block_ledger.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/memory_types.h"

namespace spillway::sim {

class IdealPool {
 public:
  explicit IdealPool(Bytes capacity = Bytes::max());

  Allocation allocate(const AllocationRequest& request);
  std::uint32_t free(BlockId block, Picos time);
  void record_stream(BlockId block, std::int64_t stream) { ledger_.record_stream(block, stream); }
  void complete_event(BlockId block, std::int64_t stream) { ledger_.complete_event(block, stream); }
  void process_events(Picos time);
  DriverCost empty_cache(Picos time);
  std::vector<BlockId> restore(const PoolState& state);

  [[nodiscard]] std::string_view name() const { return ideal_policy; }
  [[nodiscard]] PoolState state() const;
  [[nodiscard]] const MemoryStatistics& statistics() const { return ledger_.statistics; }
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return ledger_.last_out_of_memory(); }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return ledger_.pending_events(); }
  void keep_rows(bool keep) { ledger_.keep_rows(keep); }
  [[nodiscard]] std::vector<AllocationRow> rows() const { return ledger_.rows(); }

 private:
  BlockId add(const BlockLedger::Block& block);
  void release(const BlockLedger::Block& block) { ledger_.change_segments(block.kind, -1, -block.size); }

  Bytes capacity_;
  Addr next_address_;
  BlockLedger ledger_;
};

}  // namespace spillway::sim
