// Independent segments: operators that run at the same step in every legal order cut the order into pieces that can be
// arranged one by one.
//
//   o o o K o o o o K o K o o        K: key point, every other operator comes before or after it whatever the order.
//   <----->                          What lives across a key point does not depend on how the others are arranged, so
//                                    the lowest peak of the whole is the largest of the lowest peaks of the segments.
//
// ROAM calls such operators memory-insensitive: no order changes what is alive beside them.
#pragma once

#include <cstddef>
#include <vector>

#include "planners/order/order_graph.h"
#include "planners/order/roam_dag.h"

namespace spillway::planners {

// Positions in a legal order of all operators whose operators every other one is ordered with; ascending. n + m, where
// ROAM counts each operator's ancestors and descendants.
std::vector<std::size_t> key_positions(const RoamDag& dag, const std::vector<OperatorIndex>& order);

// The operators of the positions [begin, end) of a legal order as a graph of their own: what they read from before is
// made by an operator that runs first, what lives on is read by one that runs last. Its lowest peak, with what lives
// through all of it, is the segment's.
struct RoamSegment {
  OrderGraph graph;
  std::vector<OperatorIndex> operators;  // in the whole graph, of the segment's operators but the first and the last
                                         // that were put there: those have no_operator
};
inline constexpr OperatorIndex no_operator = 0xffffffffU;

// Cuts one order into segments.
class RoamCutter {
 public:
  // All must outlive this. `added` are dependencies beside the graph's.
  RoamCutter(const OrderGraph& graph, const std::vector<RoamDag::Added>& added,
             const std::vector<OperatorIndex>& order);
  [[nodiscard]] RoamSegment segment(std::size_t begin, std::size_t end) const;

 private:
  const OrderGraph& graph_;
  const std::vector<OperatorIndex>& order_;
  std::vector<std::size_t> step_;
  std::vector<std::vector<std::size_t>> in_, out_;        // tensors by operator
  std::vector<std::vector<OperatorIndex>> added_before_;  // by operator
};

}  // namespace spillway::planners
