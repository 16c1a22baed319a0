// Megatron-LM's fused kernels, and a compiler's.
#pragma once

#include <string>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// Megatron-LM's fused kernels.
Tensor bias_gelu(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter& bias);  // saves x
// residual + dropout(x + bias); saves a mask of one byte per element.
Tensor bias_dropout_add(EagerRecorder& rec, const std::string& name, const Tensor& x, TrainedParameter* bias,
                        const Tensor& residual, double probability);
// silu(first half of each row) * second half; saves x.
Tensor swiglu(EagerRecorder& rec, const std::string& name, const Tensor& x);
// function(gate) * up as a compiler fuses it.
Tensor compiled_gate(EagerRecorder& rec, const std::string& name, const Tensor& gate, const Tensor& up);
// The same with classes split over the tensor group, as Megatron-LM computes it. The row maximum, the logit of the
// label and the sum of exponentials are all-reduced. Saves the softmax in fp32, which becomes the gradient in place.
Tensor split_cross_entropy(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels);
// In fp32; its gradient comes in x's type.
Tensor widened(EagerRecorder& rec, const std::string& name, const Tensor& x);

}  // namespace spillway::models::eager
