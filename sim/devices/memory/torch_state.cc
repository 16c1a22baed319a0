// The torch policy's state as data: enumerate, start from a recorded one, check every invariant.
#include <algorithm>

#include "sim/devices/memory/torch_pool.h"
#include "traces/base/input_error.h"

namespace spillway {

PoolState TorchPool::state() const {
  std::vector<BlockId> heads;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].exists && blocks_[i].prev == BlockId::none) heads.push_back(static_cast<BlockId>(i));
  }
  std::sort(heads.begin(), heads.end(), [this](BlockId a, BlockId b) { return at(a).address < at(b).address; });
  PoolState state;
  for (const BlockId head : heads) {
    SegmentState segment;
    segment.address = at(head).address;
    segment.stream = at(head).stream;
    segment.large = !pools_[at(head).pool].small;
    segment.private_pool = pools_[at(head).pool].private_pool;
    segment.first_block = static_cast<std::uint32_t>(state.blocks.size());
    for (BlockId id = head; id != BlockId::none; id = at(id).next) {
      const Block& block = at(id);
      const bool pending = block.events > 0;
      state.blocks.push_back({block.address, block.size, block.allocated || pending ? block.requested : Bytes{},
                              block.allocated ? BlockState::allocated
                              : pending       ? BlockState::pending_free
                                              : BlockState::inactive});
      segment.total += block.size;
      ++segment.block_count;
    }
    state.segments.push_back(segment);
  }
  return state;
}

std::vector<AllocationRow> TorchPool::rows() const {
  std::vector<AllocationRow> rows = rows_;
  if (!keep_rows_) return rows;
  for (const Block& block : blocks_) {
    if (block.exists && (block.allocated || block.events > 0))
      rows.push_back({block.address, block.size, block.since, unknown_time, block.tag});
  }
  return rows;
}

std::vector<BlockId> TorchPool::restore(const PoolState& state) {
  SPILLWAY_ASSERT(blocks_.empty());
  std::vector<BlockId> ids(state.blocks.size(), BlockId::none);
  for (const SegmentState& segment : state.segments) {
    restore_segment(segment, state, ids);
    const std::uint32_t pool = pool_index(segment.private_pool, !segment.large);
    count(pool, [&segment](PoolStatistics& statistics) {
      statistics.segments.increase(1);
      statistics.reserved_bytes.increase(segment.total.count());
    });
    if (segment.total >= settings_.max_split_size) statistics_.oversize_segments.increase(1);
    constexpr std::uint64_t alignment = 2 << 20;
    const std::uint64_t end = segment.address.count() + static_cast<std::uint64_t>(segment.total.count());
    next_segment_ = std::max(next_segment_, Addr((end + alignment - 1) & ~(alignment - 1)));
  }
  return ids;
}

// Links the segment's blocks; pending ones are live until their owner frees them.
void TorchPool::restore_segment(const SegmentState& segment, const PoolState& state, std::vector<BlockId>& ids) {
  const std::uint32_t pool = pool_index(segment.private_pool, !segment.large);
  BlockId previous = BlockId::none;
  std::vector<BlockId> created;
  for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
    const MemoryBlock& recorded = state.blocks[i];
    const bool live = recorded.state != BlockState::inactive;
    if (!live && previous != BlockId::none && !at(previous).allocated) {
      at(previous).size += recorded.size;
      continue;
    }
    Block block;
    block.address = recorded.address;
    block.size = recorded.size;
    block.requested = live ? recorded.requested : Bytes{};
    block.stream = segment.stream;
    block.prev = previous;
    block.pool = pool;
    block.allocated = live;
    const BlockId id = make_block(block);
    if (previous != BlockId::none) at(previous).next = id;
    if (live) ids[i] = id;
    created.push_back(id);
    previous = id;
  }
  for (const BlockId id : created) {
    if (at(id).allocated) {
      count_live(id);
      continue;
    }
    insert_free(id);
    if (!is_split(at(id))) continue;
    const std::int64_t size = at(id).size.count();
    count(pool, [size](PoolStatistics& statistics) {
      statistics.inactive_split.increase(1);
      statistics.inactive_split_bytes.increase(size);
    });
  }
}

}  // namespace spillway
