// The trainer's own kernels on the virtual GPU: the reference's arithmetic, in the time that moving their bytes takes.
#include "validation/trainer/cpu_kernels.h"
#include "validation/trainer/cuda_kernels.cuh"

namespace spillway::virtual_gpu {
void launch_other(const char* name, double bytes, cudaStream_t stream);
}

namespace spillway::validation {

void launch_on_cuda(const StepGraph& graph, const KernelCall& call, const Operands& operands, cudaStream_t stream) {
  run_on_cpu(graph, call, operands);
  double bytes = 0;
  for (const std::uint32_t tensor : call.reads) bytes += static_cast<double>(graph.tensors[tensor].bytes().count());
  for (const std::uint32_t tensor : call.writes) bytes += static_cast<double>(graph.tensors[tensor].bytes().count());
  virtual_gpu::launch_other("trainer_kernel", bytes, stream);
}

}  // namespace spillway::validation
