#include "sim/devices/memory/torch_pool.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

// Above the 47 bits a process can address, so synthetic segments never meet recorded ones.
constexpr Addr synthetic_base{std::uint64_t{1} << 48};
constexpr std::uint64_t segment_alignment = 2 << 20;
constexpr Bytes largest_request{std::int64_t{1} << 62};

Addr after(Addr address, Bytes size) { return address + Addr(static_cast<std::uint64_t>(size.count())); }
Addr aligned(Addr address) { return Addr((address.count() + segment_alignment - 1) & ~(segment_alignment - 1)); }

}  // namespace

TorchPool::TorchPool(const TorchSettings& settings)
    : settings_(settings), limit_(reserve_limit(settings)), next_segment_(synthetic_base) {
  pool_index(0, true);
}

// Pools come in pairs, small then large; the default pair is created first.
std::uint32_t TorchPool::pool_index(std::uint32_t private_pool, bool small) {
  if (private_pool == 0 && !pools_.empty()) return small ? 0 : 1;
  std::size_t pair = 0;
  while (pair < pools_.size() && pools_[pair].private_pool != private_pool) pair += 2;
  if (pair == pools_.size()) {
    for (const bool is_small : {true, false}) {
      Pool pool;
      pool.private_pool = private_pool;
      pool.small = is_small;
      pool.freeable = private_pool == 0;
      pools_.push_back(pool);
    }
  }
  return static_cast<std::uint32_t>(pair + (small ? 0 : 1));
}

void TorchPool::use_on_out_of_memory(std::uint32_t private_pool) {
  for (const bool small : {true, false}) pools_[pool_index(private_pool, small)].on_out_of_memory = private_pool != 0;
}

void TorchPool::make_freeable(std::uint32_t private_pool) {
  for (const bool small : {true, false}) pools_[pool_index(private_pool, small)].freeable = true;
}

Allocation TorchPool::allocate(const AllocationRequest& request) {
  SPILLWAY_ASSERT(request.bytes.count() >= 0 && request.bytes < largest_request);
  if (request.bytes == Bytes::zero()) return {};  // 2
  process_events(request.time);                   // 9
  const Bytes size = round_request(settings_, request.bytes);
  const std::uint32_t pool = pool_index(request.private_pool, is_small_request(size));
  DriverCost cost;
  if (const auto best = find_free(pool, request.stream, size))
    return hand_out((*best)->block, best, request, size, cost);
  const BlockId id = find_on_miss(request, pool, size, cost);
  if (id != BlockId::none) return hand_out(id, std::nullopt, request, size, cost);
  fail(request, pool, size);
  Allocation failed;
  failed.out_of_memory = true;
  failed.cost = cost;
  return failed;
}

// Rules 10 and 11.
std::optional<FreeSet::const_iterator> TorchPool::find_free(std::uint32_t pool_number, std::int64_t stream,
                                                            Bytes size) {
  Pool& pool = pools_[pool_number];
  if (collects_garbage()) ++pool.searches;
  auto best = pool.free.lower_bound(stream, size);
  if (best == pool.free.end() || best->stream != stream) return std::nullopt;
  if (at(best->block).expandable()) best = prefer_expandable(pool, best);
  if (size < settings_.max_split_size) {
    if (best->size >= settings_.max_split_size) return std::nullopt;
  } else if (best->size - size >= settings_.max_non_split_rounding) {
    return std::nullopt;
  }
  return best;
}

// Rule 13, in order.
BlockId TorchPool::find_on_miss(const AllocationRequest& request, std::uint32_t pool, Bytes size, DriverCost& cost) {
  if (collects_garbage()) collect_garbage(cost);                                                      // a
  BlockId id = take_segment(pool, request.stream, size, cost);                                        // b
  if (id == BlockId::none && request.private_pool == 0) id = find_in_overflow(request.stream, size);  // c
  if (id == BlockId::none && release_oversize(pool, request.stream, size, cost))                      // d
    id = take_segment(pool, request.stream, size, cost);
  if (id == BlockId::none) {  // e
    release_cached(request.time, cost);
    ++statistics_.alloc_retries;
    id = take_segment(pool, request.stream, size, cost);
  }
  return id;
}

BlockId TorchPool::find_in_overflow(std::int64_t stream, Bytes size) {
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) {
    if (!pools_[pool].on_out_of_memory || pools_[pool].small != is_small_request(size)) continue;
    const auto best = find_free(pool, stream, size);
    if (!best) continue;
    const BlockId id = (*best)->block;
    pools_[pool].free.erase(*best);
    return id;
  }
  return BlockId::none;
}

// Rule 13b and 14: one block as large as the segment, outside the free set.
BlockId TorchPool::take_segment(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost) {
  if (settings_.expandable_segments) return take_expandable(pool, stream, size, cost);
  const Bytes segment = segment_size(settings_, size);
  const Bytes reserved(statistics_.all().reserved_bytes.current);
  if (segment > limit_ - reserved) {
    least_refused_ = std::min(least_refused_, reserved + segment);
    return BlockId::none;
  }
  Block block;
  block.address = segment_address(segment);
  block.size = segment;
  block.stream = stream;
  block.pool = pool;
  const BlockId id = make_block(block);
  count(pool, [segment](PoolStatistics& statistics) {
    statistics.segments.increase(1);
    statistics.reserved_bytes.increase(segment.count());
  });
  if (segment >= settings_.max_split_size) statistics_.oversize_segments.increase(1);
  ++statistics_.device_mallocs;
  ++cost.device_mallocs;
  cost.malloc_bytes += segment;
  return id;
}

Addr TorchPool::segment_address(Bytes size) {
  const auto suggested = std::find_if(suggestions_.begin(), suggestions_.end(), [&](const Suggestion& suggestion) {
    return suggestion.size == size && !suggestion.expandable &&
           (after(suggestion.address, size) <= synthetic_base || suggestion.address >= next_segment_);
  });
  Addr address = next_segment_;
  if (suggested != suggestions_.end()) {
    address = suggested->address;
    suggestions_.erase(suggested);
  }
  next_segment_ = std::max(next_segment_, aligned(after(address, size)));
  return address;
}

// place: of the block in its pool's free set, where its rest goes instead; none: it is in no set.
Allocation TorchPool::hand_out(BlockId id, std::optional<FreeSet::const_iterator> place,
                               const AllocationRequest& request, Bytes size, const DriverCost& cost) {
  const bool was_split = is_split(at(id));
  if (should_split(at(id), size)) {
    const BlockId rest = cut(id, size);
    place_free(rest, place);
    count_split(rest, size, was_split);
  } else {
    if (place) pools_[at(id).pool].free.erase(*place);
    count_whole(id, was_split);
  }
  Block& block = at(id);
  block.allocated = true;
  block.requested = request.bytes;
  block.since = request.time;
  block.tag = request.tag;
  count_live(block);
  return {id, block.address, block.size, false, cost};
}

// Rule 12.
bool TorchPool::should_split(const Block& block, Bytes size) const {
  const Bytes remaining = block.size - size;
  if (pools_[block.pool].small || settings_.expandable_segments) return remaining >= Bytes(512);
  return size < settings_.max_split_size && remaining > small_pool_limit;
}

// The low part of a block, of this size, is taken, and its rest is free.
void TorchPool::count_split(BlockId rest_id, Bytes size, bool was_split) {
  const Block& rest = at(rest_id);
  if (rest.expandable()) return;
  count(rest.pool, [&](PoolStatistics& statistics) {
    if (was_split) {
      statistics.inactive_split_bytes.decrease(size.count());
    } else {
      statistics.inactive_split.increase(1);
      statistics.inactive_split_bytes.increase(rest.size.count());
    }
  });
}

void TorchPool::count_whole(BlockId id, bool was_split) {
  const Block& block = at(id);
  if (!was_split || block.expandable()) return;
  count(block.pool, [&](PoolStatistics& statistics) {
    statistics.inactive_split.decrease(1);
    statistics.inactive_split_bytes.decrease(block.size.count());
  });
}

// Two linked blocks of one; neither set is touched. Returns the second.
BlockId TorchPool::cut(BlockId id, Bytes size) {
  Block rest = at(id);
  rest.address = after(rest.address, size);
  rest.size -= size;
  rest.prev = id;
  const BlockId rest_id = make_block(rest);
  if (rest.next != BlockId::none) at(rest.next).prev = rest_id;
  at(id).next = rest_id;
  at(id).size = size;
  return rest_id;
}

void TorchPool::count_live(const Block& block) {
  count(block.pool, [&block](PoolStatistics& statistics) {
    statistics.allocations.increase(1);
    statistics.allocated_bytes.increase(block.size.count());
    statistics.active.increase(1);
    statistics.active_bytes.increase(block.size.count());
    statistics.requested_bytes.increase(block.requested.count());
  });
  if (block.size >= settings_.max_split_size) statistics_.oversize_allocations.increase(1);
}

// Rule 15.
std::uint32_t TorchPool::free(BlockId id, Picos time) {
  SPILLWAY_ASSERT(static_cast<std::size_t>(id) < blocks_.size() && at(id).exists && at(id).allocated);
  Block& block = at(id);
  block.allocated = false;
  count(block.pool, [&block](PoolStatistics& statistics) {
    statistics.allocations.decrease(1);
    statistics.allocated_bytes.decrease(block.size.count());
  });
  if (block.size >= settings_.max_split_size) statistics_.oversize_allocations.decrease(1);
  if (block.used_elsewhere) {
    block.used_elsewhere = false;
    block.events = uses_.give_back(id);
    return block.events;
  }
  make_reusable(id, time);
  return 0;
}

void TorchPool::record_stream(BlockId id, std::int64_t stream) {
  SPILLWAY_ASSERT(static_cast<std::size_t>(id) < blocks_.size() && at(id).exists && at(id).allocated);
  if (stream == at(id).stream) return;
  uses_.record(id, stream);
  at(id).used_elsewhere = true;
}

void TorchPool::complete_event(BlockId id, std::int64_t stream) { uses_.complete(id, stream); }

void TorchPool::process_events(Picos time) {
  uses_.take_completed([&](BlockId id) {
    if (--at(id).events == 0) make_reusable(id, time);
  });
}

void TorchPool::make_reusable(BlockId id, Picos time) {
  const Block freed = at(id);
  if (keep_rows_) rows_.push_back({freed.address, freed.size, freed.since, time, freed.tag});
  std::int64_t split_blocks = 0;
  std::int64_t split_bytes = 0;
  const auto idle = [this](BlockId neighbour) {
    return neighbour != BlockId::none && at(neighbour).idle() && at(neighbour).mapped;
  };
  Pool& pool = pools_[freed.pool];
  std::optional<FreeBlock> joined;  // a neighbour whose place in the free set the whole takes
  for (const BlockId neighbour : {freed.prev, freed.next}) {
    if (!idle(neighbour)) continue;
    split_blocks -= 1;
    split_bytes -= at(neighbour).size.count();
    if (joined) pool.free.erase(*joined);
    joined = key(neighbour);
    id = neighbour == freed.prev ? merge(neighbour, id) : merge(id, neighbour);
  }
  place_free(id, joined ? std::optional(pool.free.place_of(*joined)) : std::nullopt);
  if (is_split(at(id))) {
    split_blocks += 1;
    split_bytes += at(id).size.count();
  }
  count(freed.pool, [&](PoolStatistics& statistics) {
    if (!freed.expandable()) {
      statistics.inactive_split.change(split_blocks);
      statistics.inactive_split_bytes.change(split_bytes);
    }
    statistics.active.decrease(1);
    statistics.active_bytes.decrease(freed.size.count());
    statistics.requested_bytes.decrease(freed.requested.count());
  });
}

// Both out of the free set; the first keeps its id.
BlockId TorchPool::merge(BlockId first, BlockId second) {
  const Block tail = at(second);
  at(first).size += tail.size;
  at(first).next = tail.next;
  if (tail.next != BlockId::none) at(tail.next).prev = first;
  drop_block(second);
  return first;
}

void TorchPool::fail(const AllocationRequest& request, std::uint32_t pool, Bytes size) {
  ++statistics_.ooms;
  const PoolStatistics& all = statistics_.all();
  OutOfMemory why;
  why.requested = request.bytes;
  why.needed = segment_size(settings_, size);
  why.allocated = Bytes(all.allocated_bytes.current);
  why.active = Bytes(all.active_bytes.current);
  why.reserved = Bytes(all.reserved_bytes.current);
  why.live_requested = Bytes(all.requested_bytes.current);
  why.limit = limit_;  // the smaller one, whichever was met
  why.time = request.time;
  why.tag = request.tag;
  for (const Pool& cached : pools_) {
    for (const FreeBlock& block : cached.free) (cached.small ? why.cached_small : why.cached_large) += block.size;
  }
  for (const FreeBlock& block : pools_[pool].free) {
    if (block.stream == request.stream) why.largest_free_block = std::max(why.largest_free_block, block.size);
  }
  out_of_memory_ = why;
}

BlockId TorchPool::make_block(const Block& block) {
  BlockId id = static_cast<BlockId>(blocks_.size());
  if (unused_.empty()) {
    SPILLWAY_ASSERT(id != BlockId::none);
    blocks_.push_back(block);
  } else {
    id = unused_.back();
    unused_.pop_back();
    at(id) = block;
  }
  at(id).exists = true;
  return id;
}

void TorchPool::drop_block(BlockId id) {
  at(id) = Block{};
  unused_.push_back(id);
}

FreeBlock TorchPool::key(BlockId id) const { return {at(id).stream, at(id).size, at(id).address, id}; }

void TorchPool::place_free(BlockId id, std::optional<FreeSet::const_iterator> instead_of) {
  Pool& pool = pools_[at(id).pool];
  at(id).searches_at_insertion = pool.searches;
  if (instead_of)
    pool.free.replace(*instead_of, key(id));
  else
    pool.free.insert(key(id));
}

void TorchPool::erase_free(BlockId id) { pools_[at(id).pool].free.erase(key(id)); }

FreeBlock TorchPool::unmapped_key(BlockId id) const { return {at(id).stream, Bytes{}, at(id).address, id}; }

void TorchPool::insert_unmapped(BlockId id) { pools_[at(id).pool].unmapped.insert(unmapped_key(id)); }

void TorchPool::erase_unmapped(BlockId id) { pools_[at(id).pool].unmapped.erase(unmapped_key(id)); }

}  // namespace spillway::sim
