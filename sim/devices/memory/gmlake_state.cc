// The gmlake policy's state as data, and a check of every invariant that shares no code with its updates.
#include <algorithm>

#include "sim/devices/memory/gmlake_pool.h"

namespace spillway::sim {

PoolState GmlakePool::state() const {
  PoolState state = small_.torch().state();
  for (const auto& [address, segment] : segments_) {
    SegmentState found;
    found.address = address;
    found.total = segment.total;
    found.stream = segment.stream;
    found.large = true;
    found.expandable = true;
    found.first_block = static_cast<std::uint32_t>(state.blocks.size());
    for (auto at = pieces_.find(address); at != pieces_.end() && at->second.segment == address; ++at) {
      const Piece& piece = at->second;
      state.blocks.push_back({at->first, piece.size, piece.used ? piece.size : Bytes{},
                              piece.used ? BlockState::allocated : BlockState::inactive});
      ++found.block_count;
    }
    state.segments.push_back(found);
  }
  return state;
}

std::optional<std::string> GmlakePool::check() const {
  if (auto text = small_.torch().check()) return "small pool: " + *text;
  Bytes reserved{}, used{}, free{}, split{};
  std::size_t free_pieces = 0;
  auto at = pieces_.begin();
  for (const auto& [address, segment] : segments_) {
    Addr end = address;
    bool after_free = false;
    for (; at != pieces_.end() && at->second.segment == address; ++at) {
      const Piece& piece = at->second;
      const std::string place = "piece at " + std::to_string(at->first.count());
      if (at->first != end || piece.size <= Bytes::zero()) return place + " leaves a gap, overlaps or is empty";
      if (piece.size.count() % (2 << 20) != 0) return place + " is not made of whole chunks";
      end += Addr(static_cast<std::uint64_t>(piece.size.count()));
      if (!piece.used && after_free) return place + " was not merged with its free predecessor";
      after_free = !piece.used;
      (piece.used ? used : free) += piece.size;
      if (piece.used) continue;
      ++free_pieces;
      if (piece.size < segment.total) split += piece.size;
      if (!free_.contains({segment.stream, piece.size, at->first, BlockId{0}}))
        return place + " is free but not listed";
    }
    if (end.count() != address.count() + static_cast<std::uint64_t>(segment.total.count()))
      return "pieces do not tile the segment at " + std::to_string(address.count());
    reserved += segment.total;
  }
  if (at != pieces_.end()) return "a piece belongs to no segment";
  if (free_pieces != free_.size()) return "the free set holds pieces of no segment";
  if (reserved != large_reserved_) return "reserved bytes of large segments are off";
  const PoolStatistics& large = ledger_.statistics.of(PoolKind::large);
  const PoolStatistics& small = ledger_.statistics.of(PoolKind::small);
  const PoolStatistics& all = ledger_.statistics.all();
  if (Bytes(large.reserved_bytes.current) != reserved) return "reserved bytes were counted wrongly";
  if (Bytes(large.active_bytes.current) != used) return "used pieces are not the active blocks";
  if (Bytes(large.inactive_split_bytes.current) != split) return "inactive split bytes were counted wrongly";
  const PoolStatistics& inner = small_.torch().statistics().of(PoolKind::small);
  if (inner.reserved_bytes.current != small.reserved_bytes.current) return "the small pool's segments are off";
  if (inner.allocated_bytes.current != small.active_bytes.current) return "the small pool's blocks are off";
  if (all.reserved_bytes.current != large.reserved_bytes.current + small.reserved_bytes.current)
    return "reserved bytes do not add up";
  if (Bytes(all.reserved_bytes.current) > limit_) return "reserved passes the limit";
  Bytes stitched{};
  for (std::size_t i = 0; i < stitched_.size(); ++i) {
    const Stitched& block = stitched_[i];
    if (block.size == Bytes::zero()) continue;
    const std::string place = "stitched block " + std::to_string(i);
    stitched += block.size;
    Bytes size{}, in_use{};
    for (const Run& run : block.runs) {
      size += run.size;
      for (auto p = pieces_.begin(); p != pieces_.end(); ++p) {
        if (!p->second.used) continue;
        const std::uint64_t begin = std::max(p->first.count(), run.address.count());
        const std::uint64_t end = std::min(p->first.count() + static_cast<std::uint64_t>(p->second.size.count()),
                                           run.address.count() + static_cast<std::uint64_t>(run.size.count()));
        if (begin < end) in_use += Bytes(static_cast<std::int64_t>(end - begin));
      }
    }
    if (size != block.size) return place + " is not the sum of its pieces";
    if (!block.orphaned && in_use != block.used) return place + " miscounts its chunks in use";
    const bool listed = free_stitched_.contains({block.stream, block.size, block.address, static_cast<BlockId>(i)});
    if (listed != is_idle(block)) return place + (listed ? " is in use and listed" : " is idle but not listed");
  }
  if (stitched != stitched_bytes_) return "stitched bytes were counted wrongly";
  return std::nullopt;
}

}  // namespace spillway::sim
