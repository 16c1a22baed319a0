// Launches of the kernels that measuring a GPU needs; everything else of it is plain host code. Errors:
// cudaGetLastError() afterwards.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "hwprofiles/gpu_profile.h"

namespace spillway::hwprofiles {

void launch_empty(cudaStream_t stream);
// Writes 1 into host memory that the device sees.
void launch_flag(volatile int* flag, cudaStream_t stream);
// Runs for so long on one multiprocessor.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

// Bound by memory. `bytes` of each side, a multiple of 16; read leaves `to` alone, write `from`.
enum class MemoryWork : std::uint8_t { copy, read, write };
void launch_memory(MemoryWork work, const void* from, void* to, std::size_t bytes, unsigned multiprocessors,
                   cudaStream_t stream);

// Bound by arithmetic; a block takes half of a multiprocessor or more.
void launch_multiply(float* out, unsigned blocks, cudaStream_t stream);

// Random normal numbers (normal_numbers.h) of bf16, fp32 or fp8, on the default stream.
void launch_fill(void* memory, std::size_t bytes, Precision elements, unsigned seed);

}  // namespace spillway::hwprofiles
