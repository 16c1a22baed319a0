// The ideal policy: what a step would need if placement were free. Every block is exactly as large as asked for,
// reserved equals active, and the only limit is the capacity. A lower bound for every other policy.
//
// Addresses are virtual and never reused, 512-byte aligned: no fragmentation by construction.
#pragma once

#include <span>
#include <string_view>

#include "sim/devices/memory/memory_types.h"
#include "sim/devices/memory/stream_uses.h"

namespace spillway {

class IdealPool {
 public:
  explicit IdealPool(Bytes capacity = Bytes::max());

  Allocation allocate(const AllocationRequest& request);
  std::uint32_t free(BlockId block, Picos time);
  void record_stream(BlockId block, std::int64_t stream);
  void complete_event(BlockId block, std::int64_t stream);
  void process_events(Picos time);
  DriverCost empty_cache(Picos time);
  std::vector<BlockId> restore(const PoolState& state);

  [[nodiscard]] std::string_view name() const { return "ideal"; }
  [[nodiscard]] PoolState state() const;
  [[nodiscard]] const MemoryStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return uses_.events(); }
  void keep_rows(bool keep) { keep_rows_ = keep; }
  [[nodiscard]] std::vector<AllocationRow> rows() const;

 private:
  struct Block {
    Addr address{};
    Bytes size{};  // 0: no such block
    Bytes requested{};
    Picos since{};
    std::int64_t stream = 0;
    std::uint32_t tag = no_tag;
    std::uint32_t events = 0;
    bool allocated = false;
  };

  Block& live(BlockId id);
  BlockId make_block(const Block& block);
  void release(BlockId id, Picos time);
  void fail(const AllocationRequest& request);

  Bytes capacity_;
  Addr next_address_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  StreamUses uses_;
  std::vector<AllocationRow> rows_;
  MemoryStatistics statistics_;
  OutOfMemory out_of_memory_;
  bool keep_rows_ = false;
};

}  // namespace spillway
