// Lower bounds of the peak of every order.
#pragma once

#include <cstdint>

#include "planners/order/order_links.h"

namespace spillway::planners {

// While an operator runs, every tensor lives whose source is the operator or one of its ancestors and that the operator
// or one of its descendants reads, and everything the operator makes: the largest such sum, without the constant. No
// order is lower. n (n + m) / 64 steps, 128 n bytes; above `largest` operators only what each operator reads and
// makes is summed (weaker, n + m).
std::int64_t forced_live_bound(const OrderLinks& links, std::size_t largest = 150'000);

}  // namespace spillway::planners
