// The factor of a GPU's profile (hwprofiles::OperatorScale) that the time of a kernel goes by.
//
// Recorded kernels are known by their names and by the operators that launched them. Generated ones are known by their
// prices: the step is generated again with one kind at half its rates, and those kernels take longer.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hwprofiles/gpu_profile.h"
#include "models/spec/training_setup.h"
#include "traces/trace.h"

namespace spillway::studies {

using KernelKinds = std::vector<std::optional<ScaledOperator>>;  // by op; none: no kernel, or of no kind

// A kernel of which nothing else is known is bound by memory; none: no kernel. `odd_rows_are_apart`: nor a product of
// rows at odd multiples of two bytes; some GPUs run these at fixed rates (models/cost/gemm_time.h). O(1).
std::optional<ScaledOperator> recorded_kind(const Trace& trace, OpId op, bool odd_rows_are_apart = false);

// The step as generated for another profile of the same GPU: equal ops, other times.
using StepOn = std::function<Trace(const GpuProfile& gpu)>;
// Eight generated steps.
KernelKinds generated_kinds(const Trace& trace, const StepOn& step, const GpuProfile& gpu, TrainingPrecision precision);

// The profile with times of a kind `factor` times as long, on top of what its factors say. Times of all kernels bound
// by memory take those of norms, losses and the optimizer with them. Factors that a GPU can't follow (beyond its peak)
// are cut by the cost model.
void lengthen(GpuProfile& gpu, ScaledOperator of, double factor, TrainingPrecision precision, const Origin& origin);

}  // namespace spillway::studies
