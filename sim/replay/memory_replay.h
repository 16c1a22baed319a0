// What the replayed step holds: its allocation stream through a memory policy, on the replay's clock.
//
// The stream is processed in host order, as the program would call its allocator. It is run once without a limit
// (what the step needs) and, when that exceeds the capacity, once with it (whether the policy's retries save it).
// Event times follow the host call an event is anchored to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/devices/memory/memory_plan.h"
#include "sim/replay/driver_times.h"
#include "sim/replay/result.h"
#include "traces/trace.h"

namespace spillway {

struct MemoryReplayOptions {
  std::string allocator = "torch";         // one of memory_policies()
  std::string settings;                    // PYTORCH_CUDA_ALLOC_CONF; gmlake: its own
  std::shared_ptr<const MemoryPlan> plan;  // for planned and arena
  Bytes capacity{};                        // for the step's allocator; 0: unlimited
  std::optional<std::int16_t> device{};    // of several; not given: the one that reserves most
};

// op_start: replayed start by op. A capture with host memory events alone is replayed as host memory: ideal allocator,
// no limit. A trace without memory events gives MemoryResult::known == false.
// Throws InputError for bad options. O(events log live blocks).
MemoryResult replay_memory(const Trace& trace, std::span<const Picos> op_start, const MemoryReplayOptions& options);

// Peaks alone, of every device in the trace, ascending.
struct DevicePeaks {
  std::int16_t device = 0;
  Bytes allocated{}, reserved{};
  bool fits = true;  // after the policy's retries
};

// What the allocator's calls of the driver add to a step that is one of many: those of a second run of the stream, when
// the cache is warm. Under pressure the torch policy gives segments back and takes them anew in every step.
struct AllocatorTime {
  std::vector<HostDelay> delays;  // by op, ascending; for lower()
  Picos step{};                   // their sum
  Picos first_step{};             // of the first run, anchored to ops or not
};
AllocatorTime allocator_time(const Trace& trace, const MemoryReplayOptions& options, const DriverTimes& times);

std::vector<DevicePeaks> replay_memory_peaks(const Trace& trace, const MemoryReplayOptions& options);
// Precondition: not empty.
const DevicePeaks& most_reserved(const std::vector<DevicePeaks>& peaks);

}  // namespace spillway
