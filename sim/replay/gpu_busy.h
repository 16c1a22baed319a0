// Work that keeps a GPU busy: kernels, collectives (which are kernels), fills and copies within its memory. Copies
// between it and the host, a drive or another GPU are its copy engines' work: a step that waits for them leaves it
// idle. A Result's idle share, the counter "GPU busy" and sweeps' energy count so; nvidia-smi's utilisation counts
// kernels likewise (NVML, nvmlUtilization_t). A capture's diagnosis asks what the host left undone, and counts every
// copy as work.
#pragma once

#include "traces/trace.h"

namespace spillway::sim {

constexpr bool keeps_gpu_busy(OpKind kind) {
  return kind == OpKind::kernel || kind == OpKind::collective || kind == OpKind::memset ||
         kind == OpKind::copy_device_to_device;
}

}  // namespace spillway::sim
