// Recomputation by layers, as training frameworks offer it: which saved tensors go, and before which op they come back.
// Each of these is an AwayUntil for RecomputeIndex::groups().
//
//   full        only each layer's inputs stay (Chen et al. 2016; Megatron-LM's "full")
//   selective   what the attention core makes for itself goes: scores, softmax, dropout (Korthikanti et al. 2022,
//               section 5). A core that is one kernel (flash attention) keeps nothing of that kind: nothing goes
//   every K     of K layers in a row the first is recomputed
//   segments K  the inputs of every K-th layer stay, and K layers come back together
//
// They read layers off the ops, and need a trace of a step that doesn't recompute.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/recompute/closure.h"

namespace spillway::planners {

// One layer in one micro-batch's pass.
struct LayerPass {
  std::uint16_t rank = 0, micro_batch = no_index16, layer = no_index16;
  std::vector<std::size_t> interior;  // saved tensors made, used and first used backwards by this layer alone
  std::vector<std::size_t> crossing;  // made by an earlier one, first used backwards by this one: its inputs
  OpId begins_backward = OpId::none;  // first backward use of the interior
};

// Made, used forwards and saved within one layer: a layer can recompute it from its own input.
bool is_of_one_layer(const Trace& trace, const SavedTensor& saved);

// Ascending by rank, micro-batch, layer. Throws InputError when no saved tensor belongs to a layer. O(saved log saved).
std::vector<LayerPass> layer_passes(const RecomputeIndex& index);

AwayUntil nothing_away(const RecomputeIndex& index);
AwayUntil full_recompute(const RecomputeIndex& index);
AwayUntil selective_recompute(const RecomputeIndex& index);
AwayUntil recompute_every(const RecomputeIndex& index, std::int64_t k);     // k >= 1; 1: full
AwayUntil recompute_segments(const RecomputeIndex& index, std::int64_t k);  // k >= 1; 1: full

}  // namespace spillway::planners
