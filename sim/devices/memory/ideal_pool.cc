#include "sim/devices/memory/ideal_pool.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr Addr first_address{std::uint64_t{1} << 48};

Addr next_aligned(Addr address, Bytes size) {
  return Addr((address.count() + static_cast<std::uint64_t>(size.count()) + 511) & ~std::uint64_t{511});
}

}  // namespace

IdealPool::IdealPool(Bytes capacity) : capacity_(capacity), next_address_(first_address) {}

Allocation IdealPool::allocate(const AllocationRequest& request) {
  SPILLWAY_ASSERT(request.bytes.count() >= 0);
  if (request.bytes == Bytes::zero()) return {};
  process_events(request.time);
  if (request.bytes > capacity_ - Bytes(statistics().all().active_bytes.current)) {
    ledger_.fail(request, request.bytes, capacity_);
    Allocation failed;
    failed.out_of_memory = true;
    return failed;
  }
  const Addr address = next_address_;
  next_address_ = next_aligned(address, request.bytes);
  return {add(BlockLedger::Block::of(request, address, request.bytes)), address, request.bytes, false, {}};
}

BlockId IdealPool::add(const BlockLedger::Block& block) {
  ledger_.change_segments(block.kind, 1, block.size);
  return ledger_.add(block);
}

std::uint32_t IdealPool::free(BlockId block, Picos time) {
  return ledger_.free(block, time, [this](const BlockLedger::Block& gone) { release(gone); });
}

void IdealPool::process_events(Picos time) {
  ledger_.process_events(time, [this](const BlockLedger::Block& gone) { release(gone); });
}

// Nothing is ever cached, but the call waits for pending uses as it does elsewhere.
DriverCost IdealPool::empty_cache(Picos time) {
  ledger_.wait_for_events(time, [this](const BlockLedger::Block& gone) { release(gone); });
  DriverCost cost;
  cost.synchronizations = 1;
  return cost;
}

// Blocks keep the addresses and sizes they were recorded with.
std::vector<BlockId> IdealPool::restore(const PoolState& state) {
  SPILLWAY_ASSERT(statistics().all().active.current == 0);
  std::vector<BlockId> ids(state.blocks.size(), BlockId::none);
  for (const SegmentState& segment : state.segments) {
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      const MemoryBlock& recorded = state.blocks[i];
      if (recorded.state == BlockState::inactive) continue;
      AllocationRequest request;
      request.bytes = recorded.requested;
      request.stream = segment.stream;
      ids[i] = add(BlockLedger::Block::of(request, recorded.address, recorded.requested));
      next_address_ = std::max(next_address_, next_aligned(recorded.address, recorded.size));
    }
  }
  return ids;
}

// One segment per block.
PoolState IdealPool::state() const {
  std::vector<const BlockLedger::Block*> sorted;
  ledger_.for_each([&sorted](const BlockLedger::Block& block) { sorted.push_back(&block); });
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->address < b->address; });
  PoolState state;
  for (const BlockLedger::Block* block : sorted) {
    const auto index = static_cast<std::uint32_t>(state.blocks.size());
    state.segments.push_back(
        {block->address, block->size, block->stream, 0, block->size > Bytes(1 << 20), false, index, 1});
    state.blocks.push_back({block->address, block->size, block->requested,
                            block->allocated ? BlockState::allocated : BlockState::pending_free});
  }
  return state;
}

}  // namespace spillway::sim
