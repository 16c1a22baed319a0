#include "sim/devices/memory/lent_torch.h"

namespace spillway::sim {

Allocation LentTorch::allocate(const AllocationRequest& request, Bytes owned_elsewhere, MemoryStatistics& owner) {
  torch_.hold_elsewhere(owned_elsewhere);
  const Allocation made = torch_.allocate(request);
  carry_over(owner);
  return made;
}

void LentTorch::free(BlockId id, Picos time, MemoryStatistics& owner) {
  torch_.free(id, time);
  carry_over(owner);
}

DriverCost LentTorch::empty_cache(Picos time, MemoryStatistics& owner) {
  const DriverCost cost = torch_.empty_cache(time);
  carry_over(owner);
  return cost;
}

void LentTorch::carry_over(MemoryStatistics& owner) {
  const MemoryStatistics& now = torch_.statistics();
  const auto carry = [](const Statistic& from, const Statistic& to, Statistic& outer) {
    outer.decrease(to.freed - from.freed);
    outer.increase(to.allocated - from.allocated);
  };
  for (std::size_t kind = 0; kind < pool_kind_count; ++kind) {
    const PoolStatistics& from = seen_.pools[kind];
    const PoolStatistics& to = now.pools[kind];
    PoolStatistics& outer = owner.pools[kind];
    carry(from.segments, to.segments, outer.segments);
    carry(from.reserved_bytes, to.reserved_bytes, outer.reserved_bytes);
    carry(from.inactive_split, to.inactive_split, outer.inactive_split);
    carry(from.inactive_split_bytes, to.inactive_split_bytes, outer.inactive_split_bytes);
  }
  owner.device_mallocs += now.device_mallocs - seen_.device_mallocs;
  owner.device_frees += now.device_frees - seen_.device_frees;
  owner.alloc_retries += now.alloc_retries - seen_.alloc_retries;
  seen_ = now;
}

}  // namespace spillway::sim
