// Operators as sequences of elementwise kernels, where others have one.
#pragma once

#include <string>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// GELU's tanh form operator by operator: eight kernels forwards where pointwise has one
// (models/network/eager_unfused.cc).
Tensor gelu_new(EagerRecorder& rec, const std::string& name, const Tensor& x);
// The same two as sequences of elementwise kernels. The norm saves x in fp32, a factor per row and the normalised x.
Tensor unfused_rms_norm(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& weight);
Tensor unfused_rotary(EagerRecorder& rec, const std::string& name, const Tensor& x, const Tensor& angles);

}  // namespace spillway::models::eager
