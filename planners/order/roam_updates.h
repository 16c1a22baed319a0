// ROAM's scheduling of weight updates: dependencies that say when each branch runs, so that there are key points.
//
// An update may run any time after its gradient, so it is ordered with nothing. ROAM decides beforehand:
//   - branches that would lift the peak of the backward pass wait for the branch whose gradient comes last (the
//     anchor), one after the other;
//   - every other branch runs at once: before what comes next on the longest way from its gradient;
//   - what waits for nothing runs just before its branch;
//   - what the loss neither waits for nor leads to (copies for the backward pass) runs at once.
// Source: ROAM (arXiv 2310.19295), its published code for the thresholds. Ours: an order where that iterates over sets,
// and no dependency that would close a cycle.
#pragma once

#include <cstddef>

#include "planners/order/roam_branches.h"
#include "planners/order/roam_dag.h"

namespace spillway::planners {

struct RoamUpdateOptions {
  // A branch may only be delayed if its gradient is at least that many times what its gradient operator reads. The
  // published runs use 1, and for three of their models 50, 100 and 500.
  double delay_ratio = 1;
};

// Adds the dependencies and says how many branches are delayed. Branches times (n + m).
std::size_t schedule_updates(const OrderGraph& graph, const RoamBranches& branches, const RoamUpdateOptions& options,
                             RoamDag& dag);

}  // namespace spillway::planners
