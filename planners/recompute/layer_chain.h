// A step's layers as a chain of stages (chain.h), and its plan as tensors that are away.
//
// One chain per rank; its micro-batches are planned alike, by the largest sizes and times among them. A stage's options
// are its frontier's sets (layer_frontier.h). Others hold whatever isn't a layer's own or its input's (embeddings,
// head, weights, gradients, temporaries): read off the trace, at the time of each layer's forward and backward. The ops
// between the last layer's forward and its backward (head, loss) are a separate stage that saves nothing.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "planners/recompute/chain.h"
#include "planners/recompute/layer_frontier.h"

namespace spillway::planners {

class LayerChain {
 public:
  // Throws InputError when the trace has no layers.
  LayerChain(RecomputeIndex& index, Bytes least);

  // `part`, by rank, 0 to 1: of the way from what others hold to what the rank needs when everything stays. If a rank's
  // chain cannot be done in that, only its layers' inputs stay. slots 0: by the length of the chain. O(ranks x
  // solve_chain).
  [[nodiscard]] AwayUntil away(std::span<const double> part, std::int64_t slots) const;

  [[nodiscard]] const std::vector<ChainStage>& stages(std::uint16_t rank) const { return ranks_.at(rank).stages; }

 private:
  struct Rank {
    std::vector<std::uint16_t> layers;  // ascending
    std::vector<ChainStage> stages;
    std::vector<std::vector<FrontierStep>> frontiers;
    std::vector<std::vector<const LayerPass*>> passes;  // by micro-batch: one for each stage
    Bytes everything{};                                 // most that it holds when all stays
    Bytes least{};                                      // most that others hold
  };

  void add_times();
  void add_memory();
  void add_needs(const std::vector<Bytes>& others, const LayerPass& pass, std::size_t first, std::size_t last,
                 ChainStage& stage) const;
  [[nodiscard]] std::set<std::uint32_t> own_storages(const Rank& rank) const;
  void place(const Rank& rank, const ChainPlan& plan, AwayUntil& away) const;
  [[nodiscard]] std::vector<std::size_t> inputs(const Rank& rank, const LayerPass& pass, std::size_t stage) const;

  RecomputeIndex& index_;
  std::vector<LayerPass> passes_;
  std::map<std::uint16_t, Rank> ranks_;
};

}  // namespace spillway::planners
