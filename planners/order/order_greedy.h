// The greedy list order of LESCEA (baseline of ROAM's evaluation). It takes the ready operator that leaves least alive;
// if every one would exceed the peak so far, the one that exceeds it least.
#pragma once

#include <vector>

#include "planners/order/order_links.h"

namespace spillway::planners {

// A legal order; ties go to the operator that comes first in `program_order`. Operators times the width of the graph.
std::vector<OperatorIndex> greedy_order(const OrderLinks& links, std::span<const OperatorIndex> program_order);

}  // namespace spillway::planners
