// Launches of the trainer's own kernels on a stream: everything but matrix products.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "validation/trainer/backend.h"

namespace spillway::validation {

// One warp an attention row, one block any other row. Precondition: the call is not a gemm; head size at most
// most_head_size. Errors: cudaGetLastError() afterwards.
void launch_on_cuda(const StepGraph& graph, const KernelCall& call, const Operands& operands, cudaStream_t stream);

// Backend::fill() and digest(); the latter's sum is left in device memory. Errors as above.
void fill_on_cuda(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling,
                  cudaStream_t stream);
void digest_on_cuda(const std::byte* device, Bytes bytes, std::uint64_t* sum, cudaStream_t stream);

inline constexpr std::int64_t most_head_size = 256;

}  // namespace spillway::validation
