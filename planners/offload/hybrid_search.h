// Keep, offload or recompute, called mix in scenarios: each tensor that the forward keeps stays, goes to host memory or
// to the drives, or is recomputed. The step fits a budget of device memory and is as fast as can be. Every figure is a
// replay's.
//
// Search.
//  1. Baselines, each replayed: keep all; SSDTrain's rule to drives and to host memory; full recomputation of layers,
//     and the fastest recomputation that fits (recompute_run.h). That one is refined as in 3 with half of the replays.
//     Where keeping all doesn't fit, every other technique with a name: checkpoints that leave, lifetimes, streamed
//     model state, to each tier.
//  2. Tensors leave in one of two orders: evenly over the forward, so that stores keep up with it, or the longest idle
//     first; those are made again first that take the least time per byte. For a few shares made again, the least share
//     that must leave is found by bisection on the replayed peak; loads are timed backwards from their uses in the
//     replay that keeps all.
//  3. From the best of these: of each kind of tensor (the same in every layer) as many stay as fit, shares of it take
//     another fate, of what is made again the longest idle leaves instead; in small steps single tensors and pairs are
//     moved as well; while that makes the step faster (or, if
//     nothing fits, smaller), until a pass changes nothing or the replays are used up.
// The result is never slower than the best baseline that fits. Deterministic: replays are counted, not timed.
//
// The published relatives: the cost of swapping against recomputing as Capuchin weighs them (ASPLOS 2020), lifetimes
// and reserved bandwidth as TERAIO plans them (NeurIPS 2025). Ours differs in checking each step by a replay of
// everything.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planners/offload/offload_run.h"

namespace spillway::planners {

inline constexpr std::string_view hybrid_word = "mix";

struct HybridSettings {
  Bytes budget{};  // of device memory, reserved by the options' allocator; 0: the options' capacity
  // Decisions allowed. With inferred uses nothing is recomputed: they don't say what an op needs to run again.
  bool drives = true, host = true, recompute = true;
  Bytes least_bytes{1 << 20};  // smaller tensors stay
  std::int64_t replays = 0;    // at most, baselines not counted; 0: by the size of the trace, 40 to 400
  Picos to_beat{};          // another answer's step time: what is a quarter slower is sought with less effort; 0: none
  OffloadSettings runtime;  // with what is asked of the drives: plans they refuse don't fit
                            // workers, route, drives, in flight
};

struct HybridCase {
  std::string name;
  OffloadPlan plan;
  Result result;               // against the budget
  double life_years = 0;       // infinity when nothing is written
  std::string_view technique;  // a word of offload.technique by which a run does the same; empty: only a plan
  Tier tier = Tier::drive;     // of that technique
  [[nodiscard]] bool may_fit() const { return result.answer() != Verdict::does_not_fit; }
  [[nodiscard]] bool fits() const { return result.answer() == Verdict::fits; }
};

struct HybridOutcome {
  HybridCase best;
  PlannedTrace planned;  // of the best
  std::vector<HybridCase> baselines;
  std::int64_t replays = 0;                            // of the search
  Bytes kept{}, to_host{}, to_drives{}, recomputed{};  // of the tensors that had a choice
};

// Throws InputError when the trace lacks times, memory, uses or phases. If nothing fits, `best` is what comes nearest.
// progress: called before each replay with (done, at most); false stops the search where it stands.
HybridOutcome plan_hybrid(const Trace& trace, const Replayer& replayer, const HybridSettings& settings,
                          const std::function<bool(std::int64_t, std::int64_t)>& progress = {});

// Applies a case found for a step of few micro-batches to a step with more of the same: its technique by name, else
// each tensor's decision. First micro-batches take those of the first, last ones of the last, the others of a middle
// one. Replayed, with keeping all as the only baseline. None where micro-batches are not the same ones.
std::optional<HybridOutcome> repeat_hybrid(const Trace& few, const HybridCase& found, const Trace& trace,
                                           const Replayer& replayer, const HybridSettings& settings);

}  // namespace spillway::planners
