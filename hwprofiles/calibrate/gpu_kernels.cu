// In the GPU module; see gpu_kernels.h.
#include "hwprofiles/calibrate/gpu_kernels.h"

#include "hwprofiles/calibrate/normal_numbers.h"

namespace spillway::hwprofiles {
namespace {

constexpr unsigned threads = 256, blocks_of_multiprocessor = 8, fill_blocks = 1024;
constexpr int multiply_rounds = 1 << 17;

__device__ unsigned long long global_nanoseconds() {
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
__device__ std::size_t first_of_thread() { return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; }
__device__ std::size_t all_threads() { return static_cast<std::size_t>(gridDim.x) * blockDim.x; }

__global__ void empty_kernel() {}
__global__ void flag_kernel(volatile int* flag) { *flag = 1; }
__global__ void spin_kernel(unsigned long long nanoseconds) {
  const unsigned long long start = global_nanoseconds();
  while (global_nanoseconds() - start < nanoseconds) {
  }
}
__global__ void copy_kernel(const float4* from, float4* to, std::size_t count) {
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) to[i] = from[i];
}
__global__ void read_kernel(const float4* from, float4* to, std::size_t count) {
  float4 sum = make_float4(0, 0, 0, 0);
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) {
    const float4 value = from[i];
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
  }
  // Never true of sums of so few normal numbers, but the compiler can't know: the reads stay.
  if (sum.x + sum.y + sum.z + sum.w > 1e30F) to[threadIdx.x] = sum;
}
__global__ void write_kernel(float4* to, std::size_t count) {
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) to[i] = make_float4(1, 1, 1, 1);
}
__global__ void multiply_kernel(float* out) {
  float a = 1.0F + static_cast<float>(threadIdx.x), b = 0.5F;
  for (int i = 0; i < multiply_rounds; ++i) {
    a = fmaf(a, 0.999F, b);
    b = fmaf(b, 0.998F, 1e-6F);
  }
  if (a + b < 0) out[threadIdx.x] = a;  // never, but the compiler can't know
}

__global__ void fill_bf16_kernel(std::uint16_t* to, std::size_t count, unsigned seed) {
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) to[i] = normal_bf16(i, seed);
}
__global__ void fill_fp8_kernel(std::uint8_t* to, std::size_t count, unsigned seed) {
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) to[i] = normal_fp8(i, seed);
}
__global__ void fill_fp32_kernel(float* to, std::size_t count, unsigned seed) {
  for (std::size_t i = first_of_thread(); i < count; i += all_threads()) to[i] = normal_number(i, seed);
}

}  // namespace

void launch_empty(cudaStream_t stream) { empty_kernel<<<1, 1, 0, stream>>>(); }
void launch_flag(volatile int* flag, cudaStream_t stream) { flag_kernel<<<1, 1, 0, stream>>>(flag); }
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream) { spin_kernel<<<1, 1, 0, stream>>>(nanoseconds); }

void launch_memory(MemoryWork work, const void* from, void* to, std::size_t bytes, unsigned multiprocessors,
                   cudaStream_t stream) {
  const unsigned blocks = multiprocessors * blocks_of_multiprocessor;
  const auto* source = static_cast<const float4*>(from);
  auto* target = static_cast<float4*>(to);
  const std::size_t count = bytes / sizeof(float4);
  switch (work) {
    case MemoryWork::copy:
      copy_kernel<<<blocks, threads, 0, stream>>>(source, target, count);
      break;
    case MemoryWork::read:
      read_kernel<<<blocks, threads, 0, stream>>>(source, target, count);
      break;
    case MemoryWork::write:
      write_kernel<<<blocks, threads, 0, stream>>>(target, count);
      break;
  }
}

void launch_multiply(float* out, unsigned blocks, cudaStream_t stream) {
  multiply_kernel<<<blocks, 1024, 0, stream>>>(out);
}

void launch_fill(void* memory, std::size_t bytes, Precision elements, unsigned seed) {
  if (elements == Precision::fp8)
    fill_fp8_kernel<<<fill_blocks, threads>>>(static_cast<std::uint8_t*>(memory), bytes, seed);
  else if (elements == Precision::fp32)
    fill_fp32_kernel<<<fill_blocks, threads>>>(static_cast<float*>(memory), bytes / sizeof(float), seed);
  else
    fill_bf16_kernel<<<fill_blocks, threads>>>(static_cast<std::uint16_t*>(memory), bytes / sizeof(std::uint16_t),
                                               seed);
}

}  // namespace spillway::hwprofiles
