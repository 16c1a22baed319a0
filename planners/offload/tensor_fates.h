// Decisions: one for a tensor that the forward keeps (stay, leave, recompute), and the plan that does so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "planners/recompute/closure.h"
#include "sim/replay/offload_plan.h"
#include "traces/saved_tensors.h"
#include "traces/trace.h"

namespace spillway::planners {

enum class Fate : std::uint8_t { keep, host, drive, again };
using Fates = std::vector<Fate>;  // by saved tensor

// The plan's own.
Fates fates_in(const std::vector<SavedTensor>& saved, const Trace& trace, const OffloadPlan& plan);

// Decisions of a step of few micro-batches, on one that has more of the same. The first micro-batches get those of the
// first, the last those of the last, the others those of a middle one. None if micro-batches are not the same ones.
std::optional<Fates> repeated_fates(const std::vector<SavedTensor>& shown, const Fates& fates_shown,
                                    const std::vector<SavedTensor>& all);

// The step that they are of. kept_start: by op, in the replay that keeps everything.
struct FateSources {
  const Trace& trace;
  const std::vector<SavedTensor>& saved;
  const std::vector<Picos>& kept_start;
  RecomputeIndex& index;
  const HardwareProfile& hardware;
  std::int64_t gpus_alike = 1;
};

// Adds absences and recomputations. Loads begin in time for their uses, one after another.
void add_fates(const Fates& fates, const FateSources& of, OffloadPlan& plan);

}  // namespace spillway::planners
