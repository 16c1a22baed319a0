// How far a predicted step may be off: the range that holds what is measured in 80 % of steps like it.
//
//   measured / predicted in [sum of share_b low_b, sum of share_b high_b]
// over the parts of the step's critical path (Result::breakdown). Factors depend on the kind of step (RangeKind): the
// reach of its network, experts, who measured the kernels, what slows the host. The bounds low_b and high_b are two
// regressions on published steps that no constant was fitted to, sources weighing alike
// (validation/published/range_fit.py; docs/internals/validation.md, "Ranges"). They are quantiles 0.05 and 0.92, which
// hold 84 % of the steps of sources that are left out of them. None is nearer to 1 than 0.05: chips of one model differ
// by as much. For a step over several machines at least a tenth counts as communication at the upper end: a range must
// not narrow because too little is predicted. O(1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hwprofiles/hardware_profile.h"
#include "models/spec/training_setup.h"
#include "sim/replay/result.h"

namespace spillway::scenario {

// The reach of a step's network. `inside`: all GPUs are joined by one network. `across`: they aren't. `split`: nor are
// those of a tensor group. `gathers`: ZeRO 3 that gathers each weight by itself (DeepSpeed's, and before FSDP).
enum class NetworkReach : std::uint8_t { inside, across, split, gathers };
struct RangeKind {
  NetworkReach reach = NetworkReach::inside;
  bool experts = false;  // Megatron-core's, over ranks
};
RangeKind range_kind(const models::TrainingSetup& setup, const hwprofiles::HardwareProfile& machine);
std::string range_kind_words(RangeKind kind);  // "across", "inside experts"

// Range of a generated step on that machine. Kernels of a GPU that nobody measured (CostSource::kin) err by 0.12
// besides, independently (docs/internals/operator-times.md: GPUs left out of the fit). The host of experts is known
// less, and less still if its slowdown is assumed. Not known if nothing like the step was published: steps that wait
// for copies or drives, or keep weights or optimizer states off the GPU.
sim::FigureRange step_time_range(const models::TrainingSetup& setup, const sim::Result& result,
                                 const hwprofiles::HardwareProfile& machine);

// A step's peak errs as published peaks of its kind do: the framework of its layers, and what it trains. `other`: too
// few were published.
enum class PeakKind : std::uint8_t {
  core,
  experts,
  megatron,
  modules,
  whole_vocabulary,
  trainer,
  deepspeed,
  adapters,
  other
};
PeakKind peak_kind(const models::TrainingSetup& setup);
std::string_view peak_kind_word(PeakKind kind);

// Range of its peaks under PyTorch's allocator by their kind: the middle 80 % of published peaks, sources weighing
// alike (validation/published/range_fit.py). Small peaks of adapters' training get half a GiB more at the upper end,
// which programs hold beside. It is not known if tensors leave the GPU, and for `other`. DeepSpeed's is known with Adam
// on the CPU.
sim::FigureRange peak_range(const models::TrainingSetup& setup, const sim::Result& result);

// The highest predicted peak that stays within `room` in nine of ten cases, by the upper end of its kind's range. For
// `other` that is the range of all kinds.
Bytes peak_within(const models::TrainingSetup& setup, Bytes room);

}  // namespace spillway::scenario
