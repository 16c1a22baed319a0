// How far a predicted step may be off: the range that holds what is measured in 80 % of steps like it.
//
//   measured / predicted in [sum of share_b low_b, sum of share_b high_b]
// over what binds on the step's critical path (Result::breakdown): time bound by arithmetic is known better than
// time that waits for networks. low_b and high_b are two regressions on published steps that no constant was fitted
// to, sources weighing alike (validation/published/range_fit.py; docs/internals/validation.md, "Ranges"): quantiles
// 0.05 and 0.9, which hold 80 % of the steps of a source that is left out of them. None is nearer to 1 than 0.03: chips
// of one model differ by as much. O(1).
#pragma once

#include "hwprofiles/gpu_profile.h"
#include "hwprofiles/host_profile.h"
#include "models/spec/training_setup.h"
#include "sim/replay/result.h"

namespace spillway::scenario {

// Of a generated step on that GPU; kernels of one that nobody measured (CostSource::kin) are known 0.12 less, both ways
// (docs/internals/operator-times.md: GPUs left out of the fit). The host of experts under Megatron-core is known less,
// and less still where what slows it is assumed. Not known where nothing like it was published: steps that wait for
// copies or drives, or keep weights or optimizer states off the GPU.
sim::FigureRange step_time_range(const models::TrainingSetup& setup, const sim::Result& result,
                                 const hwprofiles::GpuProfile& gpu, const hwprofiles::HostProfile& machine_host);

// Of its peaks under PyTorch's allocator, by whose layers they are (models::Framework): the middle 80 % of a source's
// ranks and stages. Not known where tensors leave the GPU, and of Megatron-core's
// settings whose layers are those of 2022 (ZeRO 3).
sim::FigureRange peak_range(const models::TrainingSetup& setup, const sim::Result& result);

}  // namespace spillway::scenario
