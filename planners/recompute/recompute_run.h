// Recomputation planned and replayed: the named policies, and searches for the fastest step that fits a budget.
//
//   greedy   steps of every layer's frontier (layer_frontier.h), cheapest per byte first, earlier layers first; as few
//            of them as fit, found by bisection on replays, each rank on its own;
//            then single ones are taken back, the most expensive first, where the rest still fits
//   chain    dynamic programming over the layers (chain.h), with the most memory for which the replay fits
//   exact    the least time on a graph of few activations (exact.h)
//   tensors  every tensor a choice of its own, layers' inputs and outputs too (tensor_search.h), from the best that the
//            others and, on a graph of few activations, exact have found
//   best     the fastest of all that fit; tensors in steps of few activations, and where nothing else fits
//
// Every figure is a replay's. Deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/recompute/layer_plans.h"
#include "planners/replayer.h"

namespace spillway::planners {

enum class RecomputeMethod : std::uint8_t {
  none,
  selective,
  full,
  every,
  segments,
  greedy,
  chain,
  exact,
  tensors,
  best
};
std::string_view to_string(RecomputeMethod method);

struct RecomputeChoice {
  RecomputeMethod method = RecomputeMethod::best;
  std::int64_t k = 0;  // of every and segments
};
// "none", "every:4", "segments:2", ...; throws InputError for anything else.
RecomputeChoice parse_recompute_choice(std::string_view text);

struct RecomputeCase {
  std::string name;  // "every:4"
  OffloadPlan plan;
  Result result;
  Bytes away{};               // of the tensors that leave
  Picos again{};              // device time of repeated ops, all ranks
  std::int64_t repeated = 0;  // ops
  std::size_t refused = 0;    // tensors asked for that cannot be recomputed
  [[nodiscard]] bool fits() const { return result.fits(); }
  [[nodiscard]] bool may_fit() const { return result.may_fit(); }
};

struct RecomputeSettings {
  RecomputeChoice choice;
  Bytes budget{};                // of device memory for the allocator; 0: the options' capacity
  Bytes least_bytes{1 << 16};    // smaller tensors stay, in greedy and chain
  std::int64_t chain_slots = 0;  // memory is counted in this many parts of the limit; 0: by the chain's length
};

struct RecomputeOutcome {
  RecomputeCase best;                 // of the method asked for; what comes nearest when nothing fits
  std::vector<RecomputeCase> others;  // none and full, and under `best` every other method tried
  std::int64_t replays = 0;
};

// Throws InputError when the trace lacks times, memory, uses or phases, and for a method by layers if it has none.
// `progress` is called before each replay with the number done; false stops with what there is.
RecomputeOutcome plan_recompute(const Trace& trace, const Replayer& replayer, const RecomputeSettings& settings,
                                const std::function<bool(std::int64_t)>& progress = {});

// Replays what is away. Tensors that cannot be recomputed stay.
RecomputeCase replay_recompute(RecomputeIndex& index, AwayUntil away, const Replayer& replayer, std::string name);

}  // namespace spillway::planners
