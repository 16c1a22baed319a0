// Replay: a Trace on a machine -> Result. Deterministic, on one thread or more (its clock and its
// allocators run side by side where they don't wait for each other, base/parallel.h); several may run in parallel.
#pragma once

#include <cstdint>
#include <string>

#include "hwprofiles/hardware_profile.h"
#include "sim/engine/event_queue.h"
#include "sim/replay/memory_replay.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/relative_speed.h"
#include "sim/replay/result.h"

namespace spillway::sim {

struct ReplayOptions {
  RelativeSpeed speed;  // against the machine the trace's durations belong to
  MemoryReplayOptions memory;
  TieOrder tie_order;
  std::int64_t tokens_per_step = 0;  // 0 unknown
  double model_flops_per_step = 0;   // without recomputation; 0 unknown
  double peak_flops_per_second = 0;  // of one GPU in the step's precision; 0 unknown
  // GPUs that the trace's ranks stand for, all together (RankPlaces): for transfers of offload plans and of the trace's
  // own, and what they hold in host memory.
  std::int64_t gpus_alike = 1;
  std::uint32_t collective_places = 1;  // of the launch queue: see LoweringOptions
  // Ranks begin their next step as soon as they are done with this one: the step time is longest_rank_span().
  bool ranks_run_ahead = false;
};

// Throws InputError when the trace lacks times, or when its edges and launch order close a cycle.
// O(n log n) in ops, edges and memory events.
Result replay(const Trace& trace, const HardwareProfile& hardware, const ReplayOptions& options);

// The same under an offload plan. Memory events are processed in the order of their replayed times. The step is one of
// many: drives' write caches begin as full as the steps before left them.
Result replay(PlannedTrace planned, const HardwareProfile& hardware, const ReplayOptions& options);

// How much faster `to` is than `from`, resource by resource: dense peak in the widest precision both have figures for,
// memory bandwidth, host link, NVLink. The host itself counts as equal.
RelativeSpeed speed_between(const GpuProfile& from, const GpuProfile& to);

}  // namespace spillway::sim
