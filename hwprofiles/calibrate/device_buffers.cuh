// Memory, streams and events of the CUDA runtime, given back when they go out of scope.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "hwprofiles/calibrate/cuda_require.cuh"

namespace spillway::hwprofiles {

static __global__ void fill_kernel(unsigned* words, std::size_t count, unsigned seed) {
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    unsigned x = static_cast<unsigned>(i) * 2654435761U + seed;
    x ^= x >> 16U;
    x *= 0x7feb352dU;
    x ^= x >> 15U;
    // As bf16 pairs and as fp32 these are ordinary numbers between 0.5 and 2.
    words[i] = (x & 0x007f007fU) | 0x3f803f00U;
  }
}

// Filled with numbers that look random, so that no compression helps.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    require(cudaMalloc(&memory_, bytes), "taking memory");
    fill_kernel<<<1024, 256>>>(static_cast<unsigned*>(memory_), bytes / sizeof(unsigned), 1);
    require(cudaGetLastError(), "filling memory");
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(memory_); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, bool pinned) : pinned_(pinned) {
    if (pinned)
      require(cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped), "taking pinned memory");
    else
      memory_ = std::calloc(bytes, 1);
    if (memory_ == nullptr) throw InputError("host", "", "no memory for a buffer to copy from", "free some");
    std::fill_n(static_cast<std::byte*>(memory_), bytes, std::byte{0x3f});  // touched, so that it is there
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { pinned_ ? static_cast<void>(cudaFreeHost(memory_)) : std::free(memory_); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
  bool pinned_;
};

class Stream {
 public:
  Stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }
  void wait() const { require(cudaStreamSynchronize(stream_), "measuring"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { require(cudaEventCreate(&event_), "making an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace spillway::hwprofiles
