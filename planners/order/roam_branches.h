// A training graph's parts that ROAM needs: where the loss is, and which operators only update a weight.
//
//   forward -> loss -> backward -+-> gradient -> update -> update -> end      a branch: nobody else waits for it
//                                +-> gradient -> update -> end
//
// ROAM finds both by the names its own importer gives ("sum_1", "_opti"). Here they come from the graph's shape and the
// program's order, so that graphs from elsewhere have them too.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/order/order_graph.h"
#include "planners/order/roam_dag.h"

namespace spillway::planners {

struct RoamBranch {
  OperatorIndex end = 0;       // nobody waits for it
  OperatorIndex gradient = 0;  // makes the gradient the branch begins with; not part of the branch
  std::int64_t bytes = 0;      // the largest tensor the branch reads from its gradient
};

struct RoamBranches {
  // On the longest way through the operators that lead to more than one end. It is the one over which most of their
  // bytes live on; of equals the one that makes least, then the earliest.
  OperatorIndex loss = 0;
  std::vector<bool> update;          // by operator: belongs to a branch
  std::vector<RoamBranch> branches;  // in the program's order of their ends; none in a graph without updates
};

// Updates are the longest tail of the program in which every operator leads to one end only and reads nothing made
// before the loss. Time: n + m, n log n for sorting.
RoamBranches find_branches(const OrderGraph& graph, const RoamDag& dag);

}  // namespace spillway::planners
