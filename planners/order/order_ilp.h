// The order with the lowest peak as an integer program, for small graphs: a baseline, and an oracle for the solver's
// tests that shares nothing with it.
//
// Time-indexed as in OLLA/MODeL (arXiv 2210.12924) and ROAM's leaves (arXiv 2310.19295), single stream: which operator
// runs at step t (C), which tensors are kept at step t (P), steps from the number of an operator's ancestors to that of
// its descendants; minimised is M >= sum size (C + P) at each step. Ours is the cumulative form of it: Z[v,t], operator
// v has run by step t, so that C[v,t] = Z[v,t] - Z[v,t-1]; Z[sink,t] <= Z[source,t-1]; P[e,t] >= Z[source,t-1] -
// Z[sink,t-1]; and exactly one operator a step, where the published program bounds tensors a step. The same orders, but
// a far tighter relaxation: CBC does not finish the published form on 25 operators.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/order/order_graph.h"

namespace spillway::planners {

struct OrderIlpOptions {
  std::size_t largest = 40;  // operators; larger graphs are refused
  int node_limit = 100'000;  // of the branch and cut
};

struct OrderIlpResult {
  std::vector<OperatorIndex> order;  // empty if the limit came before any order
  std::int64_t peak_bytes = 0;       // of that order, with the constant
  bool proven = false;
};

// Throws InputError for a graph that is too large and in a build without CBC. Precondition: no cycle.
OrderIlpResult solve_order_ilp(const OrderGraph& graph, const OrderIlpOptions& options = {});

}  // namespace spillway::planners
