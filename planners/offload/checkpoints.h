// Checkpoints that leave: full recomputation of the layers (recompute/layer_plans.h), and what it keeps, the layers'
// inputs, goes to a tier until it is needed again, by SSDTrain's rule.
//
//   forward   in0 | layer 0 | in1 | layer 1 ...        what lies inside a layer goes
//   store      [in0]         [in1]
//   backward  ... [in1 back] layer 1 again, backward of 1 | [in0 back] layer 0 again, backward of 0
//
// A step that recomputes by itself (model.recompute full) keeps the layers' inputs alone: these go. So do frameworks
// that offload activation checkpoints.
//
// The published relatives: ZeRO-Infinity's and DeepSpeed's CPU checkpointing (arXiv 2104.07857, section 5.1.2),
// Beaumont et al. 2020 (optimal combinations of both for chains).
#pragma once

#include "planners/offload/offload_run.h"

namespace spillway::planners {

inline constexpr std::string_view checkpoints_word = "checkpoints";

// Whether recomputation takes longer than two forwards. Layers recomputed from saved inputs take one more forward. If
// an input of a layer is no saved tensor, as with norms that keep a wider copy of it, each layer takes those before it
// too. O(ops).
bool repeats_layers_before(const Trace& trace, const OffloadPlan& plan);

// Throws InputError when the trace lacks times, memory, uses (inferred ones don't do), phases or layers, or the
// hardware a place to offload to. Also when a layer's input is no saved tensor, so that its recomputation would take
// the layers before it. The replays of replay_within_limits() and one.
OffloadOutcome run_checkpoints(const Trace& trace, const Replayer& replayer, const OffloadSettings& settings);

}  // namespace spillway::planners
