// The trainer's kernels on the processor: the reference for every other backend.
//
// Operands of type bf16 are widened to fp32, computed with, and rounded to nearest even when stored, as tensor cores
// with fp32 accumulation do. Sums run in a fixed order, whatever the operands' addresses.
#pragma once

#include "validation/trainer/backend.h"

namespace spillway::validation {

// Runs the call to its end.
void run_on_cpu(const StepGraph& graph, const KernelCall& call, const Operands& operands);

float to_float(std::uint16_t bf16);
std::uint16_t to_bf16(float value);  // to nearest, ties to even; NaN stays NaN

}  // namespace spillway::validation
