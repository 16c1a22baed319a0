// Meaning of the names in a Kineto trace: runtime and driver calls of CUDA and HIP, copies, collectives.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/trace.h"

namespace spillway::traces {

struct HostCall {
  OpKind kind = OpKind::host_work;
  bool informational = false;  // asks or configures; takes host time only, so it is no op
  bool blocking = false;       // a copy that returns when it is done
};

// "cudaLaunchKernel", "cuLaunchKernelEx", "hipMemcpyWithStream", ... The prefix (cuda, hip, cu) and version
// suffixes (_v2, _ptsz, _v3020) don't matter. Unknown names are host_work.
HostCall classify_host_call(std::string_view name);

struct CopyName {
  OpKind kind = OpKind::copy_device_to_device;
  bool pageable = false;
};

// "Memcpy HtoD (Pageable -> Device)"; `kind` is the "kind" argument of AMD traces ("HtoD"), may be empty.
CopyName classify_copy(std::string_view name, std::string_view kind);

// NCCL's and RCCL's device functions, by name.
bool is_collective_kernel(std::string_view name);

// From a kernel's name ("ncclDevKernel_AllReduce_Sum_f32_RING_LL") or a collective's ("allreduce", "_allgather_base").
CollectiveKind classify_collective(std::string_view name);

}  // namespace spillway::traces
