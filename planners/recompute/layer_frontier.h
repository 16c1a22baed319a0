// Memory that one layer can give up, and the time it takes: sets of its saved tensors, each containing the one before,
// with the time of their recomputation.
//
// Greedy with re-evaluation: again and again the tensor joins that frees most bytes per added time of recomputation.
// Tensors that then come free count as freed: ops repeated anyway make them. Then steps that are worse bargains than
// the one after them are joined with it, so that time per byte rises from step to step. All tensors of a layer that are
// away come back together, before the first of their backward uses: no op runs twice in a layer's backward.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "planners/recompute/layer_plans.h"

namespace spillway::planners {

struct FrontierStep {
  std::vector<std::size_t> tensors;  // that join in this step; positions in LayerPass::interior
  Bytes bytes{};                     // of theirs
  Picos time{};                      // added
};

// Tensors below `least` stay unless they come free. O(interior^2) queries.
std::vector<FrontierStep> layer_frontier(RecomputeIndex& index, const LayerPass& pass, Bytes least);

// Remembers frontiers of layers that look alike: the same ops write tensors of the same sizes in the same times.
class FrontierCache {
 public:
  FrontierCache(RecomputeIndex& index, Bytes least) : index_(index), least_(least) {}
  const std::vector<FrontierStep>& of(const LayerPass& pass);

 private:
  RecomputeIndex& index_;
  Bytes least_;
  std::deque<std::pair<std::vector<std::int64_t>, std::vector<FrontierStep>>> known_;  // references into it stay
};

}  // namespace spillway::planners
