#include "sim/devices/memory/block_ledger.h"

#include "base/input_error.h"

namespace spillway::sim {

BlockId BlockLedger::add(const Block& block) {
  SPILLWAY_ASSERT(block.size > Bytes::zero());
  BlockId id = static_cast<BlockId>(blocks_.size());
  if (unused_.empty()) {
    SPILLWAY_ASSERT(id != BlockId::none);
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    blocks_[static_cast<std::size_t>(id)] = block;
  }
  count(block.kind, [&block](PoolStatistics& pool) {
    pool.allocations.increase(1);
    pool.allocated_bytes.increase(block.size.count());
    pool.active.increase(1);
    pool.active_bytes.increase(block.size.count());
    pool.requested_bytes.increase(block.requested.count());
  });
  return id;
}

std::uint32_t BlockLedger::begin_free(BlockId id) {
  SPILLWAY_ASSERT(static_cast<std::size_t>(id) < blocks_.size() && at(id).size > Bytes::zero() && at(id).allocated);
  Block& block = blocks_[static_cast<std::size_t>(id)];
  block.allocated = false;
  count(block.kind, [&block](PoolStatistics& pool) {
    pool.allocations.decrease(1);
    pool.allocated_bytes.decrease(block.size.count());
  });
  block.events = uses_.give_back(id);
  return block.events;
}

void BlockLedger::forget(BlockId id, Picos time) {
  Block& block = blocks_[static_cast<std::size_t>(id)];
  if (keep_rows_) rows_.push_back({block.address, block.size, block.since, time, block.tag});
  count(block.kind, [&block](PoolStatistics& pool) {
    pool.active.decrease(1);
    pool.active_bytes.decrease(block.size.count());
    pool.requested_bytes.decrease(block.requested.count());
  });
  block = Block{};
  unused_.push_back(id);
}

void BlockLedger::record_stream(BlockId id, std::int64_t stream) {
  SPILLWAY_ASSERT(static_cast<std::size_t>(id) < blocks_.size() && at(id).size > Bytes::zero() && at(id).allocated);
  if (stream != at(id).stream) uses_.record(id, stream);
}

void BlockLedger::change_segments(PoolKind kind, std::int64_t segments, Bytes bytes) {
  count(kind, [&](PoolStatistics& pool) {
    pool.segments.change(segments);
    pool.reserved_bytes.change(bytes.count());
  });
}

std::vector<AllocationRow> BlockLedger::rows() const {
  std::vector<AllocationRow> rows = rows_;
  if (keep_rows_)
    for_each([&rows](const Block& block) {
      rows.push_back({block.address, block.size, block.since, unknown_time, block.tag});
    });
  return rows;
}

OutOfMemory& BlockLedger::fail(const AllocationRequest& request, Bytes needed, Bytes limit) {
  ++statistics.ooms;
  const PoolStatistics& all = statistics.all();
  OutOfMemory why;
  why.requested = request.bytes;
  why.needed = needed;
  why.allocated = Bytes(all.allocated_bytes.current);
  why.active = Bytes(all.active_bytes.current);
  why.reserved = Bytes(all.reserved_bytes.current);
  why.live_requested = Bytes(all.requested_bytes.current);
  why.limit = limit;
  why.time = request.time;
  why.tag = request.tag;
  out_of_memory_ = why;
  return out_of_memory_;
}

}  // namespace spillway::sim
