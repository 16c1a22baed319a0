// Searches of an OrderSpace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planners/pipeline/order_space.h"

namespace spillway::planners {

struct FoundOrder {
  Ticks makespan = 0;
  std::vector<OrderSpace::Choice> choices;  // in the order decided
};

// Keeps the `width` states with the lowest bounds at each depth, those with less idle time first. Nothing if memory
// runs full on all of them. O(decisions x width x positions^2).
std::optional<FoundOrder> beam_search(const OrderSpace& space, std::size_t width,
                                      const std::function<bool()>& progress);

struct ExactOrder {
  std::optional<FoundOrder> best;  // shorter than `upper`; nothing if there is none, or none was found in time
  bool complete = false;           // all states visited or excluded
};

// Depth first, deeper bounds cut, states no better than one seen with the same passes done cut as well.
ExactOrder exact_search(const OrderSpace& space, Ticks upper, std::int64_t effort,
                        const std::function<bool()>& progress);

// The orders as lanes of the plan.
void write_order(const OrderSpace& space, const FoundOrder& order, PipelinePlan& plan);

}  // namespace spillway::planners
