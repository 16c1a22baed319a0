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

// Positions of key points in a legal order of all operators, ascending: every other operator is ordered with them.
// O(n+m), where ROAM counts each operator's ancestors and descendants.
std::vector<std::size_t> key_positions(const RoamDag& dag, const std::vector<OperatorIndex>& order);

// Operators at the positions [begin, end) of a legal order as a separate graph. An operator that runs first makes what
// they read from before; one that runs last reads what stays alive. Its lowest peak, with what is alive through all of
// it, is the segment's.
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
