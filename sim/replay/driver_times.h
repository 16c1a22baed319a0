// Host time of the allocator's driver calls.
//
// cudaMalloc and cudaFree come from the GPU's profile. Virtual memory management (expandable segments, stitching) costs
// per physical chunk; profiles seldom have figures for it, and the defaults here are assumptions, named as such in
// results:
//
//   cuMemCreate                  15 us  a chunk
//   cuMemMap and cuMemSetAccess  40 us  a chunk (SetAccess dominates; the source of PyTorch's allocator says that
//                                       mapping costs by the number of handles, whatever their size)
//   cuMemUnmap and cuMemRelease  30 us  a chunk
//
// cudaFree, unmapping and the allocator's own synchronisation also wait for the device.
// Reserving addresses is free.
#pragma once

#include <span>
#include <vector>

#include "hwprofiles/gpu_profile.h"
#include "sim/devices/memory/memory_types.h"
#include "traces/trace.h"

namespace spillway::sim {

struct DriverTimes {
  Sourced<Picos> malloc, free, chunk_create, chunk_map, chunk_unmap;
};

// Absent figures: the defaults above, with provenance `assumed`.
DriverTimes driver_times(const GpuProfile& gpu);

// Time on the host, without waiting for the device.
Picos host_time(const DriverCost& cost, const DriverTimes& times);
bool waits_for_device(const DriverCost& cost);

// The host is held up on the thread of call `after`, once that has returned.
struct HostDelay {
  OpId after = OpId::none;  // a host call
  Picos time{};
  bool waits_for_device = false;
};

}  // namespace spillway::sim
