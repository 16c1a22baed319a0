#include "planners/order/roam.h"

#include <algorithm>

#include "base/stop.h"
#include "planners/order/order_buffers.h"
#include "planners/order/roam_branches.h"
#include "planners/order/roam_dag.h"
#include "planners/order/roam_layout.h"
#include "planners/order/roam_segments.h"
#include "planners/order/roam_updates.h"

namespace spillway::planners {
namespace {

// The program's order where the added dependencies allow it.
std::vector<OperatorIndex> order_with(const OrderGraph& graph, const std::vector<RoamDag::Added>& added) {
  OrderGraph constrained = graph;
  for (const RoamDag::Added& edge : added) constrained.tensors.push_back({edge.from, 0, {edge.to}});
  return legal_order(constrained);
}

class Planner {
 public:
  Planner(const OrderGraph& graph, const RoamOptions& options) : graph_(graph), options_(options), dag_(graph) {}

  RoamResult run() {
    if (graph_.operators.empty()) {
      result_.peak_bytes = result_.height_bytes = graph_.constant_bytes;
      return result_;
    }
    const RoamBranches branches = find_branches(graph_, dag_);
    result_.branches = branches.branches.size();
    result_.delayed = schedule_updates(graph_, branches, {options_.ratio}, dag_);
    result_.order = order_with(graph_, dag_.added());
    SPILLWAY_ASSERT(result_.order.size() == graph_.operators.size());
    const std::vector<std::size_t> keys = key_positions(dag_, result_.order);
    result_.key_points = keys.size();
    order_segments(keys);
    result_.peak_bytes = peak_of_order(graph_, result_.order);
    if (options_.layout) lay_out(keys, branches.loss);
    return std::move(result_);
  }

 private:
  void order_segments(const std::vector<std::size_t>& keys) {
    const std::vector<OperatorIndex> before = result_.order;
    const RoamCutter cutter(graph_, dag_.added(), before);
    std::size_t begin = 0;
    for (std::size_t k = 0; k <= keys.size(); ++k) {
      const std::size_t end = k < keys.size() ? keys[k] + 1 : before.size();
      if (begin == end) continue;
      check_stop();
      ++result_.segments;
      if (options_.progress && !options_.progress(peak_of_order(graph_, result_.order), 0)) result_.stopped = true;
      if (end - begin > 2 && !result_.stopped) order_segment(cutter.segment(begin, end), begin);
      begin = end;
    }
  }

  // A key point ends the segment: with two operators there is nothing to choose.
  void order_segment(const RoamSegment& segment, std::size_t begin) {
    const OrderResult found = solve_order(segment.graph, {options_.segment_effort, {}});
    result_.unproven_segments += found.proven ? 0 : 1;
    for (const OperatorIndex op : found.order)
      if (segment.operators[op] != no_operator) result_.order[begin++] = segment.operators[op];
  }

  void lay_out(const std::vector<std::size_t>& keys, OperatorIndex loss) {
    const auto step =
        static_cast<std::size_t>(std::find(result_.order.begin(), result_.order.end(), loss) - result_.order.begin());
    const std::vector<RoamLeaf> leaves = subgraph_tree(keys, step, result_.order.size(), options_.node_limit);
    result_.leaves = leaves.size();
    RoamLayoutOptions options;
    options.eviction_ratio = options_.ratio;
    RoamLayout layout = roam_layout(buffers_of_order(graph_, result_.order), leaves, step, options);
    result_.offsets = std::move(layout.offsets);
    result_.height_bytes = layout.height + graph_.constant_bytes;
    result_.evicted = layout.evicted;
  }

  const OrderGraph& graph_;
  const RoamOptions& options_;
  RoamDag dag_;
  RoamResult result_;
};

}  // namespace

RoamResult plan_roam(const OrderGraph& graph, const RoamOptions& options) { return Planner(graph, options).run(); }

}  // namespace spillway::planners
