#include "planners/order/order_solver.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/input_error.h"
#include "planners/order/order_bound.h"
#include "planners/order/order_exact.h"
#include "planners/order/order_links.h"
#include "planners/order/order_pass.h"

namespace spillway::planners {
namespace {

class Solver {
 public:
  Solver(const OrderGraph& graph, const OrderOptions& options)
      : graph_(graph), options_(options), links_(graph), start_(legal_order(graph)) {
    SPILLWAY_ASSERT(start_.size() == graph.operators.size());
    program_ = peak_of_order(graph, graph.program_order) - graph.constant_bytes;
    best_ = start_;
    peak_ = peak_of_order(graph, best_) - graph.constant_bytes;
    lower_ = forced_live_bound(links_);
  }

  OrderResult run() {
    const std::vector<std::int64_t> path = path_rank();
    bisect(path, passes());
    bisect(program_rank(), passes() / 3);
    refine(path);
    const std::int64_t constant = graph_.constant_bytes;
    return {std::move(best_), peak_ + constant, lower_ + constant, program_ + constant, peak_ == lower_, stopped_};
  }

 private:
  // Large graphs get fewer.
  [[nodiscard]] int passes() const { return links_.operators() > 20'000 ? 6 : 12; }

  bool goes_on() {
    if (options_.progress && !options_.progress(peak_ + graph_.constant_bytes, lower_ + graph_.constant_bytes))
      stopped_ = true;
    return !stopped_ && lower_ < peak_;
  }

  // Operators on the longest way to the end: what much depends on runs early, what little depends on just in time.
  [[nodiscard]] std::vector<std::int64_t> path_rank() const {
    std::vector<std::int64_t> rank(links_.operators(), 0);
    for (std::size_t i = start_.size(); i-- > 0;) {
      const OperatorIndex op = start_[i];
      for (const TensorIndex t : links_.out(op))
        for (const OperatorIndex sink : links_.sinks(t)) rank[op] = std::max(rank[op], rank[sink] + 1);
    }
    return rank;
  }
  [[nodiscard]] std::vector<std::int64_t> program_rank() const {
    std::vector<std::int64_t> rank(links_.operators(), 0);
    for (std::size_t i = 0; i < start_.size(); ++i) rank[start_[i]] = -static_cast<std::int64_t>(i);
    return rank;
  }

  // A pass may stay below a bound it was not given, so its peak counts, not the bound.
  void bisect(const std::vector<std::int64_t>& rank, int passes) {
    std::int64_t low = lower_, bound = lower_, tried_below = lower_;
    for (int i = 0; i < passes && low < peak_ && goes_on(); ++i) {
      // A pass that is known to run what one did that was no lower than the best needs no running.
      bool passed = false;
      if (bound >= tried_below) {
        const OrderPassResult pass = order_pass(links_, {bound, rank, 48, peak_ - 1});
        if (!pass.order.empty()) take(pass.order, pass.peak);
        passed = !pass.order.empty() && pass.peak <= bound;
        if (!passed) tried_below = std::max(tried_below, pass.same_below);
      }
      if (!passed) low = bound + 1;
      bound = low + (peak_ - low) / 2;
    }
  }

  void refine(const std::vector<std::int64_t>& rank) {
    std::int64_t left = options_.effort;
    while (left > 0 && goes_on()) {
      const OrderSearchResult found = search_order(links_, {peak_, rank, left});
      left -= found.effort;
      if (!found.order.empty()) take(found.order, found.peak);
      if (found.complete) lower_ = peak_;
      if (found.order.empty()) return;
    }
  }

  void take(const std::vector<OperatorIndex>& order, std::int64_t peak) {
    if (peak >= peak_) return;
    best_ = order;
    peak_ = peak;
  }

  const OrderGraph& graph_;
  const OrderOptions& options_;
  const OrderLinks links_;
  const std::vector<OperatorIndex> start_;  // the program's order, made legal
  std::vector<OperatorIndex> best_;
  std::int64_t peak_ = 0, lower_ = 0, program_ = 0;
  bool stopped_ = false;
};

}  // namespace

OrderResult solve_order(const OrderGraph& graph, const OrderOptions& options) { return Solver(graph, options).run(); }

}  // namespace spillway::planners
