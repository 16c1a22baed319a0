#include "sim/devices/memory/ideal_pool.h"

#include <algorithm>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr Addr first_address{std::uint64_t{1} << 48};

Addr next_aligned(Addr address, Bytes size) {
  return Addr((address.count() + static_cast<std::uint64_t>(size.count()) + 511) & ~std::uint64_t{511});
}

}  // namespace

IdealPool::IdealPool(Bytes capacity) : capacity_(capacity), next_address_(first_address) {}

IdealPool::Block& IdealPool::live(BlockId id) {
  SPILLWAY_ASSERT(static_cast<std::size_t>(id) < blocks_.size() && blocks_[static_cast<std::size_t>(id)].allocated);
  return blocks_[static_cast<std::size_t>(id)];
}

Allocation IdealPool::allocate(const AllocationRequest& request) {
  SPILLWAY_ASSERT(request.bytes.count() >= 0);
  if (request.bytes == Bytes::zero()) return {};
  process_events(request.time);
  if (request.bytes > capacity_ - Bytes(statistics_.all().active_bytes.current)) {
    fail(request);
    Allocation failed;
    failed.out_of_memory = true;
    return failed;
  }
  Block block{next_address_, request.bytes, request.bytes, request.time, request.stream, request.tag, 0, true};
  next_address_ = next_aligned(next_address_, request.bytes);
  const BlockId id = make_block(block);
  return {id, block.address, block.size, false, {}};
}

BlockId IdealPool::make_block(const Block& block) {
  BlockId id = static_cast<BlockId>(blocks_.size());
  if (unused_.empty()) {
    SPILLWAY_ASSERT(id != BlockId::none);
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    blocks_[static_cast<std::size_t>(id)] = block;
  }
  PoolStatistics& all = statistics_.pools[static_cast<std::size_t>(PoolKind::all)];
  all.allocations.increase(1);
  all.allocated_bytes.increase(block.size.count());
  all.active.increase(1);
  all.active_bytes.increase(block.size.count());
  all.requested_bytes.increase(block.requested.count());
  all.segments.increase(1);
  all.reserved_bytes.increase(block.size.count());
  return id;
}

std::uint32_t IdealPool::free(BlockId id, Picos time) {
  Block& block = live(id);
  block.allocated = false;
  PoolStatistics& all = statistics_.pools[static_cast<std::size_t>(PoolKind::all)];
  all.allocations.decrease(1);
  all.allocated_bytes.decrease(block.size.count());
  block.events = uses_.give_back(id);
  const std::uint32_t events = block.events;
  if (events == 0) release(id, time);
  return events;
}

void IdealPool::release(BlockId id, Picos time) {
  Block& block = blocks_[static_cast<std::size_t>(id)];
  if (keep_rows_) rows_.push_back({block.address, block.size, block.since, time, block.tag});
  PoolStatistics& all = statistics_.pools[static_cast<std::size_t>(PoolKind::all)];
  all.active.decrease(1);
  all.active_bytes.decrease(block.size.count());
  all.requested_bytes.decrease(block.requested.count());
  all.segments.decrease(1);
  all.reserved_bytes.decrease(block.size.count());
  block = Block{};
  unused_.push_back(id);
}

void IdealPool::record_stream(BlockId id, std::int64_t stream) {
  if (stream != live(id).stream) uses_.record(id, stream);
}

void IdealPool::complete_event(BlockId id, std::int64_t stream) { uses_.complete(id, stream); }

void IdealPool::process_events(Picos time) {
  uses_.take_completed([&](BlockId id) {
    if (--blocks_[static_cast<std::size_t>(id)].events == 0) release(id, time);
  });
}

// Nothing is ever cached, but the call waits for pending uses as it does elsewhere.
DriverCost IdealPool::empty_cache(Picos time) {
  uses_.complete_all();
  process_events(time);
  ++statistics_.sync_all_streams;
  DriverCost cost;
  cost.synchronizations = 1;
  return cost;
}

// Blocks keep the addresses and sizes they were recorded with.
std::vector<BlockId> IdealPool::restore(const PoolState& state) {
  SPILLWAY_ASSERT(blocks_.empty());
  std::vector<BlockId> ids(state.blocks.size(), BlockId::none);
  for (const SegmentState& segment : state.segments) {
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const MemoryBlock& recorded = state.blocks[i];
      if (recorded.state == BlockState::inactive) continue;
      ids[i] = make_block(
          {recorded.address, recorded.requested, recorded.requested, Picos{}, segment.stream, no_tag, 0, true});
      next_address_ = std::max(next_address_, next_aligned(recorded.address, recorded.size));
    }
  }
  return ids;
}

// One segment per block.
PoolState IdealPool::state() const {
  std::vector<const Block*> sorted;
  for (const Block& block : blocks_) {
    if (block.size > Bytes::zero()) sorted.push_back(&block);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Block* a, const Block* b) { return a->address < b->address; });
  PoolState state;
  for (const Block* block : sorted) {
    const auto index = static_cast<std::uint32_t>(state.blocks.size());
    state.segments.push_back(
        {block->address, block->size, block->stream, 0, block->size > Bytes(1 << 20), false, index, 1});
    state.blocks.push_back({block->address, block->size, block->requested,
                            block->allocated ? BlockState::allocated : BlockState::pending_free});
  }
  return state;
}

std::vector<AllocationRow> IdealPool::rows() const {
  std::vector<AllocationRow> rows = rows_;
  if (!keep_rows_) return rows;
  for (const Block& block : blocks_) {
    if (block.size > Bytes::zero()) rows.push_back({block.address, block.size, block.since, unknown_time, block.tag});
  }
  return rows;
}

void IdealPool::fail(const AllocationRequest& request) {
  ++statistics_.ooms;
  const PoolStatistics& all = statistics_.all();
  OutOfMemory why;
  why.requested = why.needed = request.bytes;
  why.allocated = Bytes(all.allocated_bytes.current);
  why.active = why.reserved = Bytes(all.active_bytes.current);
  why.live_requested = Bytes(all.requested_bytes.current);
  why.limit = capacity_;
  why.time = request.time;
  why.tag = request.tag;
  out_of_memory_ = why;
}

}  // namespace spillway
