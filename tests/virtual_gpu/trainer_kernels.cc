// The trainer's own kernels on the virtual GPU: the reference's arithmetic, where it computes, in the time that moving
// their bytes takes.
#include <memory>

#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/cuda_kernels.cuh"

namespace spillway::virtual_gpu {
void launch_other(const char* name, double bytes, cudaStream_t stream);
bool computes();
}  // namespace spillway::virtual_gpu

namespace spillway::validation {

void launch_on_cuda(const StepGraph& graph, const KernelCall& call, const Operands& operands, cudaStream_t stream) {
  if (virtual_gpu::computes()) run_on_cpu(graph, call, operands);
  double bytes = 0;
  for (const std::uint32_t tensor : call.reads) bytes += static_cast<double>(graph.tensors[tensor].bytes().count());
  for (const std::uint32_t tensor : call.writes) bytes += static_cast<double>(graph.tensors[tensor].bytes().count());
  virtual_gpu::launch_other("trainer_kernel", bytes, stream);
}

void fill_on_cuda(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling,
                  cudaStream_t stream) {
  if (virtual_gpu::computes()) make_cpu_backend()->fill(device, type, elements, filling);
  virtual_gpu::launch_other("fill_kernel", static_cast<double>(elements * bytes_of(type)), stream);
}

void digest_on_cuda(const std::byte* device, Bytes bytes, std::uint64_t* sum, cudaStream_t stream) {
  if (virtual_gpu::computes()) *sum = make_cpu_backend()->digest(device, bytes);
  virtual_gpu::launch_other("digest_kernel", static_cast<double>(bytes.count()), stream);
}

}  // namespace spillway::validation
