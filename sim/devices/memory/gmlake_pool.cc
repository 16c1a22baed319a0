#include "sim/devices/memory/gmlake_pool.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

constexpr Bytes chunk{2 << 20};
// Apart from the small pool's synthetic segments, which begin at 2^48.
constexpr Addr first_gmlake_address{std::uint64_t{1} << 56};

Addr address_after(Addr address, Bytes size) { return address + Addr(static_cast<std::uint64_t>(size.count())); }
Bytes span_of(Addr from, Addr to) { return Bytes(static_cast<std::int64_t>(to.count() - from.count())); }
std::uint32_t chunks_in(Bytes size) { return static_cast<std::uint32_t>(size.count() / chunk.count()); }

Bytes overlap(Addr a, Bytes a_size, Addr b, Bytes b_size) {
  const Addr begin = std::max(a, b), end = std::min(address_after(a, a_size), address_after(b, b_size));
  return begin < end ? span_of(begin, end) : Bytes{};
}

}  // namespace

GmlakePool::GmlakePool(const GmlakeSettings& settings)
    : settings_(settings),
      limit_(reserve_limit(settings.torch)),
      small_(settings.torch),
      next_address_(first_gmlake_address) {}

Bytes GmlakePool::round(Bytes bytes) const {
  const Bytes rounded = round_request(settings_.torch, bytes);
  return is_small_request(rounded) ? rounded : (rounded.count() + chunk.count() - 1) / chunk.count() * chunk;
}

Allocation GmlakePool::allocate(const AllocationRequest& request) {
  SPILLWAY_ASSERT(request.bytes.count() >= 0 && request.bytes < Bytes(std::int64_t{1} << 62));
  if (request.bytes == Bytes::zero()) return {};
  process_events(request.time);
  const Bytes size = round(request.bytes);
  if (is_small_request(size)) return allocate_small(request);
  Allocation made;
  std::uint32_t stitched = no_stitched;
  if (!place_large(request, size, made, stitched)) {
    OutOfMemory& why = ledger_.fail(request, size, limit_);
    for (const FreeBlock& free : free_) {
      why.cached_large += free.size;
      if (free.stream == request.stream) why.largest_free_block = std::max(why.largest_free_block, free.size);
    }
    made.out_of_memory = true;
    return made;
  }
  made.size = size;
  BlockLedger::Block block = BlockLedger::Block::of(request, made.address, size);
  block.place = stitched;
  made.block = ledger_.add(block);
  return made;
}

Allocation GmlakePool::allocate_small(const AllocationRequest& request) {
  Allocation made = small_.allocate(request, large_reserved_, ledger_.statistics);
  if (made.out_of_memory) {
    DriverCost cost = made.cost;
    release_cached(cost);
    made = small_.allocate(request, large_reserved_, ledger_.statistics);
    cost.add(made.cost);
    made.cost = cost;
  }
  if (made.out_of_memory) {
    OutOfMemory& why = ledger_.fail(request, Bytes{2 << 20}, limit_);
    why.cached_small = small_.torch().last_out_of_memory().cached_small;
    return made;
  }
  BlockLedger::Block block = BlockLedger::Block::of(request, made.address, made.size);
  block.inner = made.block;
  block.kind = PoolKind::small;
  made.block = ledger_.add(block);
  return made;
}

// The states of the header, in order.
bool GmlakePool::place_large(const AllocationRequest& request, Bytes size, Allocation& made, std::uint32_t& stitched) {
  const std::int64_t stream = request.stream;
  const auto stitch_at = [&](int level) {
    return settings_.defragment_level <= level && size >= settings_.fragment_limit &&
           stitch(stream, size, made, stitched);
  };
  if (take_piece(stream, size, made) || reuse_stitched(stream, size, made, stitched) || stitch_at(0)) return true;
  if (settings_.grow_and_stitch && size >= settings_.fragment_limit && grow(stream, size, made.cost) &&
      (take_piece(stream, size, made) || stitch(stream, size, made, stitched)))
    return true;
  const Bytes segment = segment_size(settings_.torch, size);
  if (add_segment(stream, segment, made.cost)) return take_piece(stream, size, made);
  if (stitch_at(1)) return true;
  ++ledger_.statistics.alloc_retries;
  ledger_.wait_for_events(request.time, [&](const BlockLedger::Block& block) { release(block, request.time); });
  release_cached(made.cost);
  made.cost.add(small_.empty_cache(request.time, ledger_.statistics));
  if (add_segment(stream, segment, made.cost)) return take_piece(stream, size, made);
  return take_piece(stream, size, made) || stitch_at(2);
}

bool GmlakePool::take_piece(std::int64_t stream, Bytes size, Allocation& made) {
  const auto best = free_.lower_bound(stream, size);
  if (best == free_.end() || best->stream != stream) return false;
  made.address = best->address;
  mark_used(made.address, size);
  return true;
}

bool GmlakePool::reuse_stitched(std::int64_t stream, Bytes size, Allocation& made, std::uint32_t& stitched) {
  const auto best = free_stitched_.lower_bound(stream, size);
  if (best == free_stitched_.end() || best->stream != stream) return false;
  if (static_cast<double>(best->size.count()) > static_cast<double>(size.count()) * settings_.reuse_limit) return false;
  stitched = static_cast<std::uint32_t>(best->block);
  list_stitched(stitched, false);
  stitched_[stitched].live = true;
  made.address = stitched_[stitched].address;
  const std::vector<Run> runs = stitched_[stitched].runs;
  Bytes left = size;
  for (const Run& run : runs) {
    if (left == Bytes::zero()) break;
    const Bytes taken = std::min(left, run.size);
    mark_used(run.address, taken);
    left -= taken;
  }
  return true;
}

// Largest free pieces first; one alone is no stitching.
bool GmlakePool::stitch(std::int64_t stream, Bytes size, Allocation& made, std::uint32_t& stitched) {
  std::vector<Run> runs;
  Bytes left = size;
  auto at = free_.lower_bound(stream, Bytes::max());
  while (at != free_.begin() && left > Bytes::zero()) {
    --at;
    if (at->stream != stream) break;
    const Bytes taken = std::min(left, at->size);
    runs.push_back({at->address, taken});
    left -= taken;
  }
  if (left > Bytes::zero() || runs.size() < 2) return false;
  if (stitched_bytes_ + size > settings_.stitched_limit) drop_unused_stitched(made.cost);
  for (const Run& run : runs) mark_used(run.address, run.size);
  Stitched block;
  block.address = made.address = reserve(size);
  block.size = block.used = size;
  block.stream = stream;
  block.runs = std::move(runs);
  block.live = true;
  stitched = static_cast<std::uint32_t>(stitched_.size());
  if (unused_stitched_.empty()) {
    stitched_.push_back(std::move(block));
  } else {
    stitched = unused_stitched_.back();
    unused_stitched_.pop_back();
    stitched_[stitched] = std::move(block);
  }
  stitched_bytes_ += size;
  ++stitches_;
  ++made.cost.reservations;
  ++made.cost.access_changes;
  made.cost.maps += chunks_in(size);
  return true;
}

// S4: new memory for what the stream's free pieces lack, left free.
bool GmlakePool::grow(std::int64_t stream, Bytes size, DriverCost& cost) {
  Bytes free{};
  for (auto at = free_.lower_bound(stream, Bytes{}); at != free_.end() && at->stream == stream; ++at) free += at->size;
  if (free == Bytes::zero() || free >= size) return false;
  return add_segment(stream, segment_size(settings_.torch, size - free), cost);
}

bool GmlakePool::add_segment(std::int64_t stream, Bytes segment, DriverCost& cost) {
  segment = (segment.count() + chunk.count() - 1) / chunk.count() * chunk;
  if (segment > limit_ - Bytes(ledger_.statistics.all().reserved_bytes.current)) return false;
  const Addr address = reserve(segment);
  segments_[address] = {segment, stream};
  pieces_[address] = {segment, address, false};
  insert_free(address);
  large_reserved_ += segment;
  ledger_.change_segments(PoolKind::large, 1, segment);
  ++ledger_.statistics.device_mallocs;
  ++cost.reservations;
  ++cost.access_changes;
  cost.chunks_created += chunks_in(segment);
  cost.maps += chunks_in(segment);
  cost.malloc_bytes += segment;
  return true;
}

std::uint32_t GmlakePool::free(BlockId block, Picos time) {
  return ledger_.free(block, time, [&](const BlockLedger::Block& gone) { release(gone, time); });
}

void GmlakePool::process_events(Picos time) {
  ledger_.process_events(time, [&](const BlockLedger::Block& gone) { release(gone, time); });
}

void GmlakePool::release(const BlockLedger::Block& block, Picos time) {
  if (block.kind == PoolKind::small) {
    small_.free(block.inner, time, ledger_.statistics);
  } else if (block.place == no_stitched) {
    mark_free(block.address);
  } else {
    const std::vector<Run> runs = stitched_[block.place].runs;
    Bytes left = block.size;
    for (const Run& run : runs) {
      if (left == Bytes::zero()) break;
      mark_free(run.address);
      left -= std::min(left, run.size);
    }
    stitched_[block.place].live = false;
    if (stitched_[block.place].orphaned)
      drop_stitched(block.place);
    else
      list_stitched(block.place, is_idle(stitched_[block.place]));
  }
}

DriverCost GmlakePool::empty_cache(Picos time) {
  DriverCost cost;
  ledger_.wait_for_events(time, [&](const BlockLedger::Block& gone) { release(gone, time); });
  release_cached(cost);
  cost.add(small_.empty_cache(time, ledger_.statistics));
  return cost;
}

// Segments that are one free piece; ranges stitched from them lose their meaning.
void GmlakePool::release_cached(DriverCost& cost) {
  std::vector<Addr> whole;
  for (const auto& [address, segment] : segments_) {
    const Piece& piece = pieces_.at(address);
    if (!piece.used && piece.size == segment.total) whole.push_back(address);
  }
  for (const Addr address : whole) {
    const Bytes total = segments_.at(address).total;
    for (std::uint32_t i = 0; i < stitched_.size(); ++i) {
      Stitched& block = stitched_[i];
      const bool shares = std::any_of(block.runs.begin(), block.runs.end(), [&](const Run& run) {
        return overlap(run.address, run.size, address, total) > Bytes::zero();
      });
      if (!shares) continue;
      block.orphaned = true;
      if (block.live) continue;
      cost.unmaps += chunks_in(block.size);
      drop_stitched(i);
    }
    erase_free(address);
    pieces_.erase(address);
    segments_.erase(address);
    large_reserved_ -= total;
    ledger_.change_segments(PoolKind::large, -1, -total);
    ++ledger_.statistics.device_frees;
    cost.unmaps += chunks_in(total);
    cost.chunks_released += chunks_in(total);
    cost.free_bytes += total;
  }
}

void GmlakePool::drop_stitched(std::uint32_t index) {
  list_stitched(index, false);
  stitched_bytes_ -= stitched_[index].size;
  stitched_[index] = Stitched{};
  unused_stitched_.push_back(index);
}

void GmlakePool::drop_unused_stitched(DriverCost& cost) {
  for (std::uint32_t i = 0; i < stitched_.size(); ++i) {
    if (stitched_[i].size == Bytes::zero() || stitched_[i].live) continue;
    cost.unmaps += chunks_in(stitched_[i].size);
    drop_stitched(i);
  }
}

// Precondition: the range begins a piece that is free and large enough, or lies in one.
void GmlakePool::mark_used(Addr address, Bytes size) {
  auto at = std::prev(pieces_.upper_bound(address));
  SPILLWAY_ASSERT(!at->second.used && address_after(address, size) <= address_after(at->first, at->second.size));
  const Addr begin = at->first;
  const Addr segment = at->second.segment;
  const Bytes before = span_of(begin, address);
  const Bytes behind = at->second.size - before - size;
  erase_free(begin);
  pieces_[address] = {size, segment, true};
  if (before > Bytes::zero()) {
    pieces_[begin].size = before;
    insert_free(begin);
  }
  if (behind > Bytes::zero()) {
    pieces_[address_after(address, size)] = {behind, segment, false};
    insert_free(address_after(address, size));
  }
  adjust_stitched(address, size, true);
}

// Precondition: a used piece begins there. Joins it with free neighbours of its segment.
void GmlakePool::mark_free(Addr address) {
  auto at = pieces_.find(address);
  SPILLWAY_ASSERT(at != pieces_.end() && at->second.used);
  at->second.used = false;
  const Bytes size = at->second.size;
  const auto joins = [&](const auto& other) {
    return !other->second.used && other->second.segment == at->second.segment;
  };
  if (const auto next = std::next(at); next != pieces_.end() && joins(next)) {
    erase_free(next->first);
    at->second.size += next->second.size;
    pieces_.erase(next);
  }
  if (at != pieces_.begin() && joins(std::prev(at))) {
    const auto previous = std::prev(at);
    erase_free(previous->first);
    previous->second.size += at->second.size;
    pieces_.erase(at);
    at = previous;
  }
  insert_free(at->first);
  adjust_stitched(address, size, false);
}

void GmlakePool::adjust_stitched(Addr address, Bytes size, bool used) {
  for (std::uint32_t i = 0; i < stitched_.size(); ++i) {
    Stitched& block = stitched_[i];
    Bytes shared{};
    for (const Run& run : block.runs) shared += overlap(run.address, run.size, address, size);
    if (shared == Bytes::zero()) continue;
    const bool was_idle = is_idle(block);
    block.used += used ? shared : -shared;
    if (is_idle(block) != was_idle) list_stitched(i, !was_idle);
  }
}

void GmlakePool::list_stitched(std::uint32_t index, bool free) {
  const Stitched& block = stitched_[index];
  const FreeBlock key{block.stream, block.size, block.address, static_cast<BlockId>(index)};
  if (free_stitched_.contains(key) == free) return;
  free ? free_stitched_.insert(key) : free_stitched_.erase(key);
}

// Free pieces of split segments are counted as PyTorch counts them.
void GmlakePool::insert_free(Addr address) {
  const Piece& piece = pieces_.at(address);
  const Segment& segment = segments_.at(piece.segment);
  free_.insert({segment.stream, piece.size, address, BlockId{0}});
  if (piece.size == segment.total) return;
  for (const PoolKind kind : {PoolKind::all, PoolKind::large}) {
    PoolStatistics& pool = ledger_.statistics.pools[static_cast<std::size_t>(kind)];
    pool.inactive_split.increase(1);
    pool.inactive_split_bytes.increase(piece.size.count());
  }
}

void GmlakePool::erase_free(Addr address) {
  const Piece& piece = pieces_.at(address);
  const Segment& segment = segments_.at(piece.segment);
  free_.erase(FreeBlock{segment.stream, piece.size, address, BlockId{0}});
  if (piece.size == segment.total) return;
  for (const PoolKind kind : {PoolKind::all, PoolKind::large}) {
    PoolStatistics& pool = ledger_.statistics.pools[static_cast<std::size_t>(kind)];
    pool.inactive_split.decrease(1);
    pool.inactive_split_bytes.decrease(piece.size.count());
  }
}

// Addresses, not memory.
Addr GmlakePool::reserve(Bytes size) {
  const Addr address = next_address_;
  next_address_ = address_after(address, size);
  return address;
}

}  // namespace spillway::sim
