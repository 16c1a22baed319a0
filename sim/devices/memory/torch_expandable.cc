// Expandable segments of the torch policy: rules 17 to 21.
#include <algorithm>

#include "base/input_error.h"
#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {
namespace {

Bytes distance(Addr from, Addr to) { return Bytes(static_cast<std::int64_t>(to.count() - from.count())); }
Bytes rounded_up(Bytes bytes, Bytes page) { return (bytes.count() + page.count() - 1) / page.count() * page; }
Bytes rounded_down(Bytes bytes, Bytes page) { return bytes.count() / page.count() * page; }
std::uint32_t pages_in(Bytes bytes, Bytes page) { return static_cast<std::uint32_t>(bytes.count() / page.count()); }

}  // namespace

// Rule 18: of the blocks from the best fit on, the first whose successor could not grow to less than it could.
FreeSet::const_iterator TorchPool::prefer_expandable(const Pool& pool, FreeSet::const_iterator best) const {
  const auto reach = [this](const FreeBlock& free) {
    const BlockId next = at(free.block).next;
    return free.size + (next != BlockId::none && !at(next).mapped ? at(next).size : Bytes{});
  };
  for (auto next = std::next(best); at(best->block).expandable() && next != pool.free.end(); ++next) {
    if (next->stream != best->stream || reach(*next) >= reach(*best)) break;
    best = next;
  }
  return best;
}

// Rule 19: the lowest run of free and unmapped addresses that is long enough, with pages put where they are missing.
BlockId TorchPool::take_expandable(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost) {
  const Bytes reserved(statistics_.all().reserved_bytes.current);
  if (segment_size(settings_, size) > allowed_limit(settings_) - reserved) return BlockId::none;
  BlockId id = find_addresses(pool, stream, size, cost);
  if (!at(id).mapped) id = map(id, std::min(at(id).size, size), cost);
  while (id != BlockId::none && at(id).size < size) {
    const BlockId next = at(id).next;
    id = map(next, std::min(size - at(id).size, at(next).size), cost);
  }
  if (id != BlockId::none) erase_free(id);
  return id;
}

// Free or unmapped, the beginning of a run of at least `size` such bytes; a new address range if there is none.
BlockId TorchPool::find_addresses(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost) {
  const auto usable = [this](BlockId id) { return id != BlockId::none && at(id).idle(); };
  const FreeSet& unmapped = pools_[pool].unmapped;
  for (auto i = unmapped.lower_bound(stream, Bytes{}); i != unmapped.end() && i->stream == stream; ++i) {
    const BlockId first = usable(at(i->block).prev) ? at(i->block).prev : i->block;
    Bytes run{};
    for (BlockId id = first; run < size && usable(id); id = at(id).next) run += at(id).size;
    if (run >= size) return first;
  }
  const bool small = pools_[pool].small;
  Block range;
  range.size = std::max(address_range(settings_, small), rounded_up(size, page_size(settings_, small)));
  const bool suggested = !suggestions_.empty() && suggestions_.front().expandable;
  range.address = range.range = suggested ? suggestions_.front().address : segment_address(range.size);
  range.stream = stream;
  range.pool = pool;
  range.mapped = false;
  ++cost.reservations;
  const BlockId id = make_block(range);
  insert_unmapped(id);
  return id;
}

// Rules 19 and 20: backs the first `size` bytes of an unmapped block with pages and joins them with free neighbours.
// Returns the free block they are in; none, and nothing changed, if memory is short.
BlockId TorchPool::map(BlockId id, Bytes size, DriverCost& cost) {
  const std::uint32_t pool = at(id).pool;
  const Bytes page = page_size(settings_, pools_[pool].small);
  const Bytes mapped = std::min(rounded_up(size, page), at(id).size);
  if (mapped > physical_limit(settings_) - Bytes(statistics_.all().reserved_bytes.current)) return BlockId::none;
  erase_unmapped(id);
  if (mapped < at(id).size) insert_unmapped(cut(id, mapped));
  at(id).mapped = true;
  const auto joins = [this](BlockId other) { return other != BlockId::none && at(other).idle() && at(other).mapped; };
  std::erase_if(suggestions_, [&](const Suggestion& suggestion) {
    return suggestion.expandable && suggestion.address == at(id).address && suggestion.size == mapped;
  });
  const BlockId before = at(id).prev, behind = at(id).next;
  if (joins(before)) {
    erase_free(before);
    id = merge(before, id);
  }
  if (joins(behind)) {
    erase_free(behind);
    merge(id, behind);
  }
  insert_free(id);
  count(pool, [mapped](PoolStatistics& statistics) { statistics.reserved_bytes.increase(mapped.count()); });
  ++statistics_.device_mallocs;
  cost.chunks_created += pages_in(mapped, page);
  cost.maps += pages_in(mapped, page);
  ++cost.access_changes;
  cost.malloc_bytes += mapped;
  return id;
}

// Rule 21: takes the whole pages out of a free block. An address range without any page left is given up.
void TorchPool::unmap(BlockId id, DriverCost& cost) {
  const std::uint32_t pool = at(id).pool;
  const Bytes page = page_size(settings_, pools_[pool].small);
  const Bytes from = distance(at(id).range, at(id).address);
  const Bytes begin = rounded_up(from, page);
  const Bytes end = rounded_down(from + at(id).size, page);
  if (begin >= end) return;
  erase_free(id);
  if (begin > from) {
    const BlockId inner = cut(id, begin - from);
    insert_free(id);
    id = inner;
  }
  if (end - begin < at(id).size) insert_free(cut(id, end - begin));
  at(id).mapped = false;
  const auto joins = [this](BlockId other) { return other != BlockId::none && !at(other).mapped; };
  const BlockId before = at(id).prev, behind = at(id).next;
  if (joins(before)) {
    erase_unmapped(before);
    id = merge(before, id);
  }
  if (joins(behind)) {
    erase_unmapped(behind);
    merge(id, behind);
  }
  const Bytes unmapped = end - begin;
  count(pool, [unmapped](PoolStatistics& statistics) { statistics.reserved_bytes.decrease(unmapped.count()); });
  ++statistics_.device_frees;
  ++cost.synchronizations;  // of the segment's stream
  cost.unmaps += pages_in(unmapped, page);
  cost.chunks_released += pages_in(unmapped, page);
  cost.free_bytes += unmapped;
  if (is_split(at(id)))
    insert_unmapped(id);
  else
    drop_block(id);
}

bool TorchPool::unmap_range(Addr address) {
  for (const Pool& pool : pools_) {
    const auto found = std::find_if(pool.free.begin(), pool.free.end(), [&](const FreeBlock& free) {
      return at(free.block).expandable() && free.address <= address && distance(free.address, address) < free.size;
    });
    if (found == pool.free.end()) continue;
    DriverCost cost;
    unmap(found->block, cost);
    return true;
  }
  return false;
}

}  // namespace spillway::sim
