// Recomputation of a small graph with the least time under a memory limit, exactly. The problem is Checkmate's (Jain et
// al., MLSys 2020), for a fixed order of the backward and any order of the forward.
//
// A state is how far the backward has come and which values are in memory; its neighbours run one op or drop one value.
// Dijkstra's algorithm finds the cheapest path, without Checkmate's restrictions (each op at most once per stage) and
// without an integer program. It is meant for few values, where states are few. Memory held by others is no part of the
// problem: take it off the limit.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/recompute/closure.h"

namespace spillway::planners {

struct RematNode {
  Picos time{};
  Bytes temporary{};                  // while it runs
  std::vector<std::uint32_t> reads;   // values
  std::vector<std::uint32_t> writes;  // values; what is there already isn't taken again
  bool is_backward = false;           // runs exactly once, after the backward nodes before it
  OpId op = OpId::none;               // of the trace the problem was made from
};

struct RematProblem {
  std::vector<Bytes> values;
  std::vector<RematNode> nodes;    // backward ones in their order
  std::vector<std::size_t> saved;  // by value: index of the saved tensor, or no_saved
  static constexpr std::size_t no_saved = ~std::size_t{0};
};

constexpr std::size_t most_exact_values = 24;

struct RematSolution {
  bool is_complete = true;  // false: there were more than `most_states`
  bool is_possible = false;
  Picos time{};                     // of all runs
  std::vector<std::uint32_t> runs;  // nodes
};

// Precondition: at most most_exact_values values and 255 backward nodes. O(backward nodes x 2^values x nodes).
RematSolution solve_exact(const RematProblem& problem, Bytes limit, std::size_t most_states = 4'000'000);

// The problem of a trace of one rank: forward ops that make activations, and backward ops that use these. Throws
// InputError when there are more than most_exact_values activations, or one is changed in place.
RematProblem remat_problem(const RecomputeIndex& index);

// When the solution brings each saved tensor back; what it makes before the backward begins stays.
AwayUntil away_in(const RematProblem& problem, const RematSolution& solution, const RecomputeIndex& index);

}  // namespace spillway::planners
