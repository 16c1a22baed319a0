#include "sim/replay/driver_times.h"

namespace spillway::sim {
namespace {

Sourced<Picos> or_assumed(const Maybe<Picos>& value, Picos assumed) {
  if (value) return *value;
  return {assumed, {OriginKind::assumed, "no figure in the profile: default of sim/replay/driver_times.h", ""}};
}

}  // namespace

DriverTimes driver_times(const GpuProfile& gpu) {
  DriverTimes times;
  times.malloc = gpu.malloc_cost;
  times.free = gpu.free_cost;
  times.chunk_create = or_assumed(gpu.chunk_create_cost, microseconds(15));
  times.chunk_map = or_assumed(gpu.chunk_map_cost, microseconds(40));
  times.chunk_unmap = or_assumed(gpu.chunk_unmap_cost, microseconds(30));
  return times;
}

Picos host_time(const DriverCost& cost, const DriverTimes& times) {
  return times.malloc.value * cost.device_mallocs + times.free.value * cost.device_frees +
         times.chunk_create.value * cost.chunks_created + times.chunk_map.value * cost.maps +
         times.chunk_unmap.value * cost.unmaps;
}

bool waits_for_device(const DriverCost& cost) {
  return cost.device_frees > 0 || cost.unmaps > 0 || cost.synchronizations > 0;
}

}  // namespace spillway::sim
