// Adapters of frozen linear layers, and weights as products read them.
#pragma once

#include <string>

#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// A frozen layer's result and that of its adapters, weight.adapter_a and adapter_b: out + scaled B A
// x. `x` gets a separate gradient from them.
Tensor add_adapter(EagerRecorder& rec, const std::string& name, const Tensor& out, const Tensor& adapted);
// The input that adapters of `weight` read: x, or a copy of it cast and with dropout.
Tensor adapter_input(EagerRecorder& rec, const std::string& name, const Tensor& x, const TrainedParameter& weight);
[[nodiscard]] bool adapter_reads_input(const EagerRecorder& rec, const TrainedParameter& weight);  // x itself
// The weight as a product of this type reads it: as it is, cast, or unpacked into a temporary.
Tensor weight_operand(EagerRecorder& rec, const TrainedParameter& weight, DataType type, std::int64_t parts = 1);
// Takes a weight's gradient; in the weight's own type.
void accumulate(EagerRecorder& rec, TrainedParameter& weight, Tensor gradient);
// As a separate function: its gradient is cast back.
Tensor recorded_cast(EagerRecorder& rec, const std::string& name, const Tensor& x, DataType type);

}  // namespace spillway::models::eager
