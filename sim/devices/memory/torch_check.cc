// Brute force: recomputes what the torch policy maintains incrementally. Shares no code with its updates.
#include <algorithm>
#include <map>

#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {
namespace {

struct Tally {
  std::int64_t allocations = 0, allocated_bytes = 0, active = 0, active_bytes = 0, requested_bytes = 0;
  std::int64_t segments = 0, reserved_bytes = 0, inactive_split = 0, inactive_split_bytes = 0;
};

std::optional<std::string> compare(const char* pool, const Tally& tally, const PoolStatistics& statistics) {
  const auto differs = [pool](const char* name, std::int64_t found, const Statistic& kept) {
    const bool sound = found == kept.current && kept.peak >= kept.current && kept.current >= 0 &&
                       kept.allocated - kept.freed == kept.current && kept.peak <= kept.allocated;
    return sound ? std::string()
                 : std::string(pool) + " " + name + ": counted " + std::to_string(found) + ", kept " +
                       std::to_string(kept.current) + ", peak " + std::to_string(kept.peak);
  };
  for (const std::string& text :
       {differs("allocations", tally.allocations, statistics.allocations),
        differs("allocated bytes", tally.allocated_bytes, statistics.allocated_bytes),
        differs("active", tally.active, statistics.active),
        differs("active bytes", tally.active_bytes, statistics.active_bytes),
        differs("requested bytes", tally.requested_bytes, statistics.requested_bytes),
        differs("segments", tally.segments, statistics.segments),
        differs("reserved bytes", tally.reserved_bytes, statistics.reserved_bytes),
        differs("inactive split", tally.inactive_split, statistics.inactive_split),
        differs("inactive split bytes", tally.inactive_split_bytes, statistics.inactive_split_bytes)}) {
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> TorchPool::check() const {
  std::array<Tally, pool_kind_count> tallies{};
  std::map<Addr, Addr> segments;  // begin -> end
  std::size_t free_blocks = 0, unmapped_blocks = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& head = blocks_[i];
    if (!head.exists || head.prev != BlockId::none) continue;
    Addr end = head.address;
    std::int64_t blocks = 0;
    bool after_free = false;
    const bool whole = head.next == BlockId::none;
    const std::size_t kind = static_cast<std::size_t>(pools_[head.pool].small ? PoolKind::small : PoolKind::large);
    BlockId previous = BlockId::none;
    for (BlockId id = static_cast<BlockId>(i); id != BlockId::none; previous = id, id = at(id).next, ++blocks) {
      const Block& block = at(id);
      const std::string place = "block " + std::to_string(static_cast<std::uint32_t>(id));
      if (!block.exists) return place + " is linked but gone";
      if (block.prev != previous) return place + " has a wrong predecessor";
      if (block.address != end) return place + " leaves a gap or overlaps within its segment";
      if (block.size <= Bytes::zero()) return place + " is empty";
      if (block.pool != head.pool || block.stream != head.stream) return place + " strayed from its pool or stream";
      if (block.allocated && block.events > 0) return place + " is live and pending";
      end += Addr(static_cast<std::uint64_t>(block.size.count()));
      const bool active = block.allocated || block.events > 0;
      if (active && block.size < block.requested) return place + " is smaller than its request";
      if (block.range != head.range) return place + " strayed from its reservation";
      const bool outside = pools_[block.pool].unmapped.contains(unmapped_key(id));
      if (outside == block.mapped)
        return place + (outside ? " is mapped and listed as not" : " is not mapped nor listed");
      if (previous != BlockId::none && at(previous).mapped != block.mapped &&
          (block.address.count() - block.range.count()) %
                  static_cast<std::uint64_t>(page_size(settings_, pools_[block.pool].small).count()) !=
              0)
        return place + " begins within a page";
      if (!block.mapped) {
        if (active || !block.expandable()) return place + " has no memory and can't be";
        if (previous != BlockId::none && !at(previous).mapped) return place + " was not merged with its predecessor";
        after_free = false;
        ++unmapped_blocks;
        continue;
      }
      const bool listed = pools_[block.pool].free.contains(key(id));
      if (listed == active) return place + (active ? " is active and in the free set" : " is free but not in the set");
      if (!active && after_free) return place + " was not merged with its free predecessor";
      after_free = !active;
      free_blocks += active ? 0 : 1;
      for (const std::size_t k : {std::size_t{0}, kind}) {
        Tally& tally = tallies[k];
        tally.segments += block.prev == BlockId::none && !block.expandable() ? 1 : 0;
        tally.reserved_bytes += block.size.count();
        tally.allocations += block.allocated ? 1 : 0;
        tally.allocated_bytes += block.allocated ? block.size.count() : 0;
        tally.active += active ? 1 : 0;
        tally.active_bytes += active ? block.size.count() : 0;
        tally.requested_bytes += active ? block.requested.count() : 0;
        tally.inactive_split += !active && !whole && !block.expandable() ? 1 : 0;
        tally.inactive_split_bytes += !active && !whole && !block.expandable() ? block.size.count() : 0;
      }
    }
    segments[head.address] = end;
  }
  Addr last{};
  for (const auto& [begin, end] : segments) {
    if (begin < last) return "segments overlap at " + std::to_string(begin.count());
    last = end;
  }
  std::size_t listed = 0, unmapped = 0;
  for (const Pool& pool : pools_) {
    listed += pool.free.size();
    unmapped += pool.unmapped.size();
  }
  if (listed != free_blocks) return "the free sets hold blocks of no segment";
  if (unmapped != unmapped_blocks) return "the unmapped sets hold blocks of no segment";
  if (Bytes(tallies[0].reserved_bytes) > (settings_.expandable_segments ? physical_limit(settings_) : limit_))
    return "reserved passes the limit";
  const char* const names[] = {"all", "small", "large"};
  for (std::size_t k = 0; k < pool_kind_count; ++k) {
    if (auto text = compare(names[k], tallies[k], statistics_.pools[k])) return text;
  }
  return std::nullopt;
}

}  // namespace spillway::sim
