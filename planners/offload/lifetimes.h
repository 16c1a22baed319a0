// Offloading by lifetimes: every tensor of a step, weights and optimizer state included, may leave device memory while
// nothing uses it.
//
//   lifetimes  the planner of TERAIO (NeurIPS 2025), in our words: again and again take the idle interval that lowers
//              the memory above the limit most for the time its transfers take, and reserve bandwidth for both over
//              time, on the drives, or on the way to host memory where the drives' time is taken.
//   stream     what ZeRO-Infinity (arXiv 2104.07857) does with model state: every weight and every optimizer tensor
//              leaves whenever it isn't used, and comes back a layer ahead of its use.
//
// Deviations. The limit is that of the replay's allocator; where the replayed peak is above it, planning repeats with a
// limit lower by the difference. The optimizer stays on the GPU in both (ZeRO-Offload's runs on the CPU).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/offload/offload_run.h"

namespace spillway::planners {

inline constexpr std::string_view lifetimes_word = "lifetimes", streaming_word = "stream";

struct IdleInterval {
  TensorId tensor = TensorId::none;
  std::uint32_t storage = 0;
  Bytes bytes{};
  TensorRole role = TensorRole::unknown;
  OpId leave_after = OpId::none;  // none: until its first use in the step
  OpId back_before = OpId::none;  // none: from its last use on
  OpId last_write = OpId::none;   // in the step, before the interval; none: it is as it was when the step began
  Picos begin{}, end{};           // of the interval in the replay
};

// Intervals between consecutive uses, and around the step's ends for what stays beyond it. Storages smaller than
// `least` are left out. op_start, op_end: of a replay of `trace`. A tensor that stays beyond the step has its part
// before the first use and the part after the last use as one pair: planners take both or none. Needs uses and memory.
// O(uses log uses).
std::vector<IdleInterval> idle_intervals(const Trace& trace, std::span<const Picos> op_start,
                                         std::span<const Picos> op_end, Bytes least);

// Lifetimes: at most six times the replays of replay_with_forwarding() and one; streaming: once those and one. Both
// throw as run_ssdtrain() does.
OffloadOutcome run_lifetimes(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings);
OffloadOutcome run_streaming(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings);

}  // namespace spillway::planners
