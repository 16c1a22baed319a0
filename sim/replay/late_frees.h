// Blocks that a communicator's stream used come back late. PyTorch's ProcessGroupNCCL calls record_stream() on what a
// collective reads and writes. The allocator then gives a freed block out again only when the GPU has got there. The
// host freed it long before that where it runs ahead. PyTorch 2.8 ended this; before, TORCH_NCCL_AVOID_RECORD_STREAMS=1
// does (pytorch/pytorch pull requests 148590 and 76861, which has the symptom).
//
// A free puts an event on each communicator's stream that used the block, behind all that the host has launched there.
// The allocator looks at events when it is next asked (c10/cuda/CUDACachingAllocator.cpp, process_events in malloc).
#pragma once

#include <cstdint>
#include <span>

#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway::sim {

// The launch queue bounds how far ahead the host gets. A collective takes seven of its places. One is its kernel. Two
// events are recorded on one of both streams and waited for on the other: four (ProcessGroupNCCL.cpp, syncStream() and
// wait()). Two operands get an event each when they are freed. We assume that events take places as kernels do, since
// streams share one channel under Megatron's CUDA_DEVICE_MAX_CONNECTIONS=1.
inline constexpr std::uint32_t places_of_nccl = 7;

// Writes into the memory events of a generated trace when each freed block is to be had again (free_completed), by the
// times of a replay of it. Precondition: frees are single events, addresses are not used again. O(events log ops).
void add_late_frees(Trace& trace, std::span<const Picos> op_start, std::span<const Picos> op_end);

}  // namespace spillway::sim
