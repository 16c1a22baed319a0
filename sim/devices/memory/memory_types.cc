#include "sim/devices/memory/memory_types.h"

#include <fmt/format.h>

#include "base/number_text.h"

namespace spillway::sim {
namespace {

double unused_share(std::int64_t used, std::int64_t reserved) {
  return reserved == 0 ? 0.0 : 1.0 - static_cast<double>(used) / static_cast<double>(reserved);
}

}  // namespace

void DriverCost::add(const DriverCost& more) {
  device_mallocs += more.device_mallocs;
  device_frees += more.device_frees;
  synchronizations += more.synchronizations;
  malloc_bytes += more.malloc_bytes;
  free_bytes += more.free_bytes;
  chunks_created += more.chunks_created;
  chunks_released += more.chunks_released;
  maps += more.maps;
  unmaps += more.unmaps;
  access_changes += more.access_changes;
  reservations += more.reservations;
}

std::string describe(const OutOfMemory& why) {
  std::string text =
      fmt::format("out of memory: {} asked for ({} needed), {} reserved of a limit of {}", mib_text(why.requested),
                  mib_text(why.needed), mib_text(why.reserved), mib_text(why.limit));
  text += fmt::format("; {} allocated for {} of requests", mib_text(why.allocated), mib_text(why.live_requested));
  if (why.active > why.allocated)
    text += fmt::format("; {} given back but still in use by other streams", mib_text(why.active - why.allocated));
  const Bytes cached = why.cached_small + why.cached_large;
  if (cached > Bytes::zero()) {
    text += fmt::format(
        "; {} cached in pieces of segments in use ({} small, {} large), the largest that could serve {}",
        mib_text(cached), mib_text(why.cached_small), mib_text(why.cached_large), mib_text(why.largest_free_block));
  }
  const Bytes missing = why.needed - (why.limit - why.reserved);
  if (missing > Bytes::zero()) text += fmt::format("; {} more would have had to be free", mib_text(missing));
  return text;
}

Fragmentation fragmentation(const MemoryStatistics& statistics) {
  const PoolStatistics& all = statistics.all();
  Fragmentation result;
  result.by_allocated = unused_share(all.allocated_bytes.peak, all.reserved_bytes.peak);
  result.by_active = unused_share(all.active_bytes.peak, all.reserved_bytes.peak);
  result.internal = Bytes(all.active_bytes.current - all.requested_bytes.current);
  result.irreducible = Bytes(all.inactive_split_bytes.current);
  return result;
}

}  // namespace spillway::sim
