// How the torch policy gives memory back to the driver: rules 13d, 13e, 16 and empty_cache.
#include <algorithm>

#include "base/input_error.h"
#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {

bool TorchPool::collects_garbage() const {
  return settings_.memory_fraction < 1 && settings_.garbage_collection_threshold > 0;
}

// Rule 16: frees whole passes of unsplit large blocks of at least average age until enough is reclaimed.
void TorchPool::collect_garbage(DriverCost& cost) {
  const Bytes reserved(statistics_.all().reserved_bytes.current);
  const double allowed = settings_.memory_fraction * static_cast<double>(settings_.device_memory.count());
  const double threshold = settings_.garbage_collection_threshold * static_cast<double>(Bytes::rep(allowed));
  if (static_cast<double>(reserved.count()) <= threshold) return;
  const Bytes target = reserved - Bytes(static_cast<std::int64_t>(threshold));
  const std::uint32_t large = pool_index(0, false);
  const auto age = [&](BlockId id) { return pools_[large].searches - at(id).searches_at_insertion; };

  Bytes reclaimed{};
  while (reclaimed < target) {
    std::vector<BlockId> candidates;
    std::uint64_t total_age = 0;
    for (const FreeBlock& free : pools_[large].free) {
      if (is_split(at(free.block)) || at(free.block).expandable()) continue;
      candidates.push_back(free.block);
      total_age += age(free.block);
    }
    if (candidates.empty()) return;
    const Bytes before = reclaimed;
    const double mean = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    for (const BlockId id : candidates) {
      if (static_cast<double>(age(id)) < mean) continue;
      reclaimed += at(id).size;
      release(id, cost);
    }
    if (reclaimed == before) return;
  }
}

// Rule 13d: one sufficient oversize block, else the largest ones downwards until the sum suffices.
bool TorchPool::release_oversize(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost) {
  if (settings_.max_split_size == Bytes::max()) return false;
  const Bytes wanted = std::max(size, settings_.max_split_size);
  const FreeSet& free = pools_[pool].free;
  const auto first = free.lower_bound(stream, wanted);
  auto sufficient = first;
  while (sufficient != free.end() && sufficient->stream == stream && is_split(at(sufficient->block)) &&
         !at(sufficient->block).expandable())
    ++sufficient;
  std::vector<BlockId> chosen;
  Bytes sum{};
  if (sufficient != free.end() && sufficient->stream == stream && !at(sufficient->block).expandable()) {
    chosen.push_back(sufficient->block);
    sum = sufficient->size;
  } else {
    for (auto largest = first; largest != free.begin() && sum < wanted;) {
      --largest;
      if (largest->stream != stream || largest->size < settings_.max_split_size) break;
      if (at(largest->block).expandable()) continue;
      if (is_split(at(largest->block))) continue;  // only in states recorded under other settings
      chosen.push_back(largest->block);
      sum += largest->size;
    }
  }
  for (const BlockId id : chosen) release(id, cost);
  return sum >= wanted;
}

// Rule 13e: after all events, every unsplit cached segment goes, and every empty page of expandable ones. The default
// pair goes large first, private ones small first.
void TorchPool::release_cached(Picos time, DriverCost& cost) {
  ++statistics_.sync_all_streams;
  ++cost.synchronizations;
  uses_.complete_all();
  process_events(time);
  release_pool(1, cost);
  release_pool(0, cost);
  for (std::uint32_t pool = 2; pool < pools_.size(); ++pool) {
    if (pools_[pool].freeable) release_pool(pool, cost);
  }
}

void TorchPool::release_pool(std::uint32_t pool, DriverCost& cost) {
  std::vector<BlockId> whole, pages;
  for (const FreeBlock& free : pools_[pool].free) {
    if (at(free.block).expandable())
      pages.push_back(free.block);
    else if (!is_split(at(free.block)))
      whole.push_back(free.block);
  }
  for (const BlockId id : whole) release(id, cost);
  for (const BlockId id : pages) unmap(id, cost);
}

DriverCost TorchPool::empty_cache(Picos time) {
  DriverCost cost;
  release_cached(time, cost);
  return cost;
}

bool TorchPool::release_segment(Addr address) {
  for (const Pool& pool : pools_) {
    const auto found = std::find_if(pool.free.begin(), pool.free.end(),
                                    [address](const FreeBlock& block) { return block.address == address; });
    if (found == pool.free.end()) continue;
    if (is_split(at(found->block)) || at(found->block).expandable()) return false;
    DriverCost cost;
    release(found->block, cost);
    return true;
  }
  return false;
}

// Precondition: a free, unsplit block.
void TorchPool::release(BlockId id, DriverCost& cost) {
  const Block block = at(id);
  SPILLWAY_ASSERT(!is_split(block) && block.idle() && !block.expandable());
  erase_free(id);
  drop_block(id);
  count(block.pool, [&block](PoolStatistics& statistics) {
    statistics.segments.decrease(1);
    statistics.reserved_bytes.decrease(block.size.count());
  });
  if (block.size >= settings_.max_split_size) statistics_.oversize_segments.decrease(1);
  ++statistics_.device_frees;
  ++cost.device_frees;
  cost.free_bytes += block.size;
}

}  // namespace spillway::sim
