// How long a graph's kernels take by a GPU's profile alone: what predicts a step before it has run anywhere.
//
// Products and kernels that stream their operands once are priced, by models::CostModel at the clock that these settle
// at. Products are cuBLASLt's, for the trainer as for any framework. The others are embed and its positions' gradient,
// layer norms, GELU, add, the logits' gradient and AdamW. The rest are the trainer's own ways, which no library has:
// attention without tensor cores, sums over columns and over the vocabulary, the mean loss in one block. No profile is
// about them, so they keep the times measured. An error must be stated with their share.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "hwprofiles/hardware_profile.h"
#include "validation/trainer/step_graph.h"

namespace spillway::validation {

// Whether a profile is about such kernels.
bool is_priced(TrainerKernel kernel);

struct BlindTimes {
  std::vector<Picos> durations;  // by call of the graph
  double measured_share = 0;     // of their sum: kernels that keep what was measured, [0, 1]
};

// measured: of each call, by its index. Throws InputError for a profile without arithmetic peaks.
BlindTimes blind_times(const StepGraph& graph, const HardwareProfile& hardware, std::span<const Picos> measured);

}  // namespace spillway::validation
