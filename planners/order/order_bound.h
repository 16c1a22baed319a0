// Lower bounds of the peak of every order.
#pragma once

#include <cstdint>

#include "planners/order/order_links.h"

namespace spillway::planners {

// The most bytes that must be alive while some operator runs, without the constant. No order is lower. A tensor counts
// if the operator or an ancestor makes it, and the operator or a descendant reads it. All that the operator itself
// makes counts too. Time: n (n + m) / 64 steps, 128 n bytes. Above `largest` operators only what each operator reads
// and makes is summed (weaker, n + m).
std::int64_t forced_live_bound(const OrderLinks& links, std::size_t largest = 150'000);

}  // namespace spillway::planners
