// A model spec and a training set-up to the trace of one training step; on one GPU as described here, on several as
// models/step/parallel_trace.h says.
//
// The trace is what PyTorch eager would record of a plain implementation. It has a host lane of launch calls and a
// stream of kernels in program order. Activations are alive until the backward pass has used them. The backward
// allocates gradients, and the optimizer passes over the parameters. It has every capability. Its memory events are in
// host order and carry requested sizes; persistent tensors (weights, master weights, optimizer state) are allocated
// before the step starts. Addresses are labels: each allocation has another one.
//
// If experts' loads are drawn, the allocator's history before the step has the same step with other draws. If the
// set-up evaluates, it has an evaluation (models/step/interlude.h). generate_parallel_trace() by itself
// adds neither.
//
// Deviations from eager PyTorch: RMSNorm and rotary embedding are one kernel each, and so are scaling, masking and
// softmax together, unless the set-up's fused_kernels is off. The backward runs on the one host lane (not on autograd's
// thread). A GEMM has no workspace.
#pragma once

#include <cstdint>
#include <optional>

#include "models/cost/cost_model.h"
#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "models/step/parallel_trace.h"
#include "traces/trace.h"

namespace spillway::models {

// Throws InputError as resolve() does. O(layers * micro-batches + parameters).
Trace generate_trace(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                     const Cluster& cluster = {});

// The same step, showing `shown` of its micro-batches or a few more, so that `turns` goes into StepFold::times. None
// where the step has no such form: too few micro-batches, a schedule that doesn't repeat, micro-batches that differ
// (experts' drawn loads), a host that works beside the GPU. Throws as above.
std::optional<FoldedTrace> generate_folded_trace(const ModelSpec& model, const TrainingSetup& setup,
                                                 const CostModel& cost, const Cluster& cluster, std::int64_t shown,
                                                 std::int64_t turns = 1);

}  // namespace spillway::models
