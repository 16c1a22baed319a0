// The torch policy's state as data: enumerate, start from a recorded one, check every invariant.
#include <algorithm>

#include "base/input_error.h"
#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {

PoolState TorchPool::state() const {
  std::vector<BlockId> heads;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.exists && block.mapped && (block.prev == BlockId::none || !at(block.prev).mapped))
      heads.push_back(static_cast<BlockId>(i));
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
    segment.expandable = at(head).expandable();
    for (BlockId id = head; id != BlockId::none && at(id).mapped; id = at(id).next) {
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
  std::vector<BlockId> heads;
  for (const SegmentState& segment : state.segments) {
    heads.push_back(restore_segment(segment, state, ids));
    const std::uint32_t pool = pool_index(segment.private_pool, !segment.large);
    const bool pages = segment.expandable && settings_.expandable_segments;
    count(pool, [&](PoolStatistics& statistics) {
      statistics.segments.increase(pages ? 0 : 1);
      statistics.reserved_bytes.increase(segment.total.count());
    });
    if (!pages && segment.total >= settings_.max_split_size) statistics_.oversize_segments.increase(1);
    constexpr std::uint64_t alignment = 2 << 20;
    const std::uint64_t end = segment.address.count() + static_cast<std::uint64_t>(segment.total.count());
    next_segment_ = std::max(next_segment_, Addr((end + alignment - 1) & ~(alignment - 1)));
  }
  restore_ranges(state, heads);
  return ids;
}

// Links the segment's blocks; pending ones are live until their owner frees them.
BlockId TorchPool::restore_segment(const SegmentState& segment, const PoolState& state, std::vector<BlockId>& ids) {
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
    if (segment.expandable && settings_.expandable_segments) block.range = segment.address;
    const BlockId id = make_block(block);
    if (previous != BlockId::none) at(previous).next = id;
    if (live) ids[i] = id;
    created.push_back(id);
    previous = id;
  }
  for (const BlockId id : created) {
    if (at(id).allocated) {
      count_live(at(id));
      continue;
    }
    insert_free(id);
    if (!is_split(at(id)) || at(id).expandable()) continue;
    const std::int64_t size = at(id).size.count();
    count(pool, [size](PoolStatistics& statistics) {
      statistics.inactive_split.increase(1);
      statistics.inactive_split_bytes.increase(size);
    });
  }
  return created.empty() ? BlockId::none : created.front();
}

// Rule 17 backwards: a reservation begins where its first mapped range does (what was below is unknown) and ends after
// its usual length, or where something else begins.
void TorchPool::restore_ranges(const PoolState& state, const std::vector<BlockId>& heads) {
  if (!settings_.expandable_segments) return;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (heads[i] == BlockId::none || !at(heads[i]).expandable()) continue;
    const Block head = at(heads[i]);
    const Bytes length = address_range(settings_, pools_[head.pool].small);
    const Addr limit = head.range + Addr(static_cast<std::uint64_t>(length.count()));
    BlockId last = heads[i];
    while (at(last).next != BlockId::none) last = at(last).next;
    const bool more = i + 1 < heads.size();
    const bool continues = more && heads[i + 1] != BlockId::none && at(heads[i + 1]).expandable() &&
                           at(heads[i + 1]).pool == head.pool && at(heads[i + 1]).stream == head.stream &&
                           state.segments[i + 1].address < limit;
    if (continues) {
      for (BlockId id = heads[i + 1]; id != BlockId::none; id = at(id).next) at(id).range = head.range;
      link_unmapped(last, at(heads[i + 1]).address, heads[i + 1]);
    } else {
      link_unmapped(last, more ? std::min(limit, state.segments[i + 1].address) : limit, BlockId::none);
    }
    next_segment_ = std::max(next_segment_, limit);
  }
}

// Addresses without memory between two blocks, in whole pages.
void TorchPool::link_unmapped(BlockId before, Addr end, BlockId behind) {
  const Block& last = at(before);
  const Bytes page = page_size(settings_, pools_[last.pool].small);
  Block gap;
  gap.address = last.address + Addr(static_cast<std::uint64_t>(last.size.count()));
  if (end > gap.address) gap.size = Bytes(static_cast<std::int64_t>(end.count() - gap.address.count()));
  if (behind == BlockId::none) gap.size = gap.size.count() / page.count() * page;
  if (gap.size == Bytes::zero() && behind == BlockId::none) return;
  gap.stream = last.stream;
  gap.pool = last.pool;
  gap.range = last.range;
  gap.mapped = false;
  gap.prev = before;
  gap.next = behind;
  BlockId link = behind;
  if (gap.size > Bytes::zero()) {
    link = make_block(gap);
    insert_unmapped(link);
  }
  at(before).next = link;
  if (behind != BlockId::none) at(behind).prev = link == behind ? before : link;
}

}  // namespace spillway::sim
