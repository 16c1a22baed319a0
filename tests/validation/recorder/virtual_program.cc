// A program that uses CUDA, on the virtual GPU (tests/virtual_gpu): copies both ways, kernels on two streams, an event
// between them. The driver's part, loading what CUDA_INJECTION64_PATH names, it plays itself. Whole numbers of what it
// does are known to virtual_recorder_test.py.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "hwprofiles/calibrate/gpu_kernels.h"

namespace {

void need(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(6);
}

int load_injection() {
  const char* injection = std::getenv("CUDA_INJECTION64_PATH");
  if (injection == nullptr) return 0;
  void* library = dlopen(injection, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 4;
  }
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (begin == nullptr) return 5;
  begin();
  return 0;
}

}  // namespace

int main() {
  using namespace spillway::hwprofiles;
  if (const int code = load_injection(); code != 0) return code;
  constexpr std::size_t mib = std::size_t{1} << 20;
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  void *device = nullptr, *host = nullptr;
  need(cudaSetDevice(0));
  for (cudaStream_t* stream : {&first, &second}) need(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  need(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  need(cudaMalloc(&device, 64 * mib));
  need(cudaHostAlloc(&host, 64 * mib, cudaHostAllocDefault));
  need(cudaMemcpyAsync(device, host, 16 * mib, cudaMemcpyHostToDevice, first));
  launch_memory(MemoryWork::copy, device, static_cast<char*>(device) + 32 * mib, 32 * mib, 132, first);
  need(cudaEventRecord(event, first));
  need(cudaStreamWaitEvent(second, event, 0));
  launch_spin(250'000, second);
  for (int i = 0; i < 20; ++i) launch_empty(first);
  need(cudaStreamSynchronize(first));
  need(cudaMemcpyAsync(host, device, 8 * mib, cudaMemcpyDeviceToHost, second));
  need(cudaDeviceSynchronize());
  need(cudaFree(device));
  need(cudaGetLastError());
  return 0;
}
