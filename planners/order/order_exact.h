// Exhaustive search for an order below a given peak.
//
// Depth first over what has run (downward-closed sets of operators), each set entered once. Two rules leave most of
// them out and no optimum. Roots run just before their first reader. An operator that can run below the bound and
// leaves no more alive than before runs at once. Bytes alive are submodular in what has run, so every order that runs
// it later can run it now.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/order/order_links.h"

namespace spillway::planners {

struct OrderSearchOptions {
  std::int64_t below = 0;              // an order with a smaller peak than that is sought; without the constant
  std::span<const std::int64_t> rank;  // of each operator; the highest is tried first
  std::int64_t effort = 1'000'000;     // operators visited, at most
};

struct OrderSearchResult {
  std::vector<OperatorIndex> order;  // empty if none was found
  std::int64_t peak = 0;             // of that order
  bool complete = false;             // nothing found because there is none
  std::int64_t effort = 0;           // spent
};

// Sets are distinguished exactly with up to 128 operators that are no roots, by 128 random bits beyond. Two different
// sets among a million are then taken for one with odds below 10^-26. Memory: 16 bytes per set entered, and the depth.
OrderSearchResult search_order(const OrderLinks& links, const OrderSearchOptions& options);

}  // namespace spillway::planners
