// The order of a graph's operators with the lowest peak of memory: proven where it can be, near it elsewhere.
//
// Passes keep below a bound (order_pass.h), which is bisected between the forced-live bound and the best order known,
// by two ranks. Exhaustive search for anything lower follows (order_exact.h): it finds a better order, proves that
// there is none, or ends with its effort. See docs/internals/roam.md.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planners/order/order_graph.h"

namespace spillway::planners {

// Called now and then with the best peak so far; false ends the search with what there is.
using OrderProgress = std::function<bool(std::int64_t peak_bytes, std::int64_t lower_bound_bytes)>;

struct OrderOptions {
  // Effort of the exhaustive search, in operators visited; a million are about 0.3 seconds. The same effort gives the
  // same answer on every machine.
  std::int64_t effort = 2'000'000;
  OrderProgress progress;
};

struct OrderResult {
  std::vector<OperatorIndex> order;
  std::int64_t peak_bytes = 0;         // all three with the constant
  std::int64_t lower_bound_bytes = 0;  // no order is lower
  std::int64_t program_order_peak_bytes = 0;
  bool proven = false;   // peak_bytes == lower_bound_bytes
  bool stopped = false;  // by the progress callback
};

// Never worse than legal_order(). A graph with a cycle is a programmer's error. 100,000 operators: seconds.
OrderResult solve_order(const OrderGraph& graph, const OrderOptions& options = {});

}  // namespace spillway::planners
