// Recomputation of a chain of stages with the least time under a memory limit: dynamic programming over (first stage,
// last stage, memory left).
//
//   forwards   x_0 -> [0] -> x_1 -> [1] -> x_2 -> ... -> [n-1]
//   backwards  stage s needs its input x_s and what it saved (its interior)
//
// T(s, t, m): least time for the forwards of s..t and then their backwards t..s with x_s there and m left beside it.
//   keep s         forward saving (one of the stage's options), T(s+1, t, m - x_{s+1} - saved), backward
//   check at c     forwards s..c-1 saving nothing, T(c, t, m - x_c), then T(s, c-1, m)
// An option's time is what a stage runs again for its backward when it saves less than everything.
//
// Source: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, Optimal checkpointing for heterogeneous chains (2019;
// rotor): optimal among schedules that keep a checkpoint until it has been used. Options per stage: Zhao et al.,
// Rockmate (ICML 2023). Ours besides: memory held by others may differ from stage to stage (gradients grow as
// activations go).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

namespace spillway::planners {

struct ChainOption {
  Bytes saved{};  // of the interior, <= ChainStage::interior
  Picos again{};  // to make the rest before the backward
};

struct ChainStage {
  Picos forward{}, backward{};
  Bytes input{};                     // x_s; not counted for the first stage
  Bytes interior{};                  // everything its backward needs besides x_s
  std::vector<ChainOption> options;  // at least one
  // Held besides inputs and interiors that are kept.
  //   first  in the first forward
  //   again  the same without what others hold
  //   pass   when nothing is saved, so that the interior comes and goes
  Bytes first_need{}, first_pass_need{}, again_need{}, again_pass_need{};
  Bytes backward_need{};  // during its backward
  Bytes backward_base{};  // by others when its backward begins
};

struct ChainPlan {
  static constexpr std::size_t kept = ~std::size_t{0};
  Picos time{};
  // By stage: its input, and the interior its option saves, are made before the backward of the stage named here; kept:
  // in the first forward. The rest of the interior comes back before the stage's own backward.
  std::vector<std::size_t> input_from, interior_from, option;
};

// Empty when the chain doesn't fit. Sizes are rounded up to limit / slots. Precondition: slots >= 1.
// O(n^3 slots + n^2 slots options).
std::optional<ChainPlan> solve_chain(std::span<const ChainStage> stages, Bytes limit, std::int64_t slots);

}  // namespace spillway::planners
