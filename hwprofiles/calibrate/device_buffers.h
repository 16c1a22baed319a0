// Memory, streams and events of the CUDA runtime, given back when they go out of scope.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "hwprofiles/calibrate/cuda_require.h"
#include "hwprofiles/calibrate/gpu_kernels.h"

namespace spillway::hwprofiles {

// Random normal numbers of mean 0 and variance 1, as an operand's elements are: bf16, fp32 or fp8 without NaN. A
// multiplier's power, and so its clock, depends on the bits that it is given.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes, Precision elements = Precision::bf16) : bytes_(bytes) {
    require(cudaMalloc(&memory_, bytes), "taking memory");
    fill(elements);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(memory_); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t size() const { return bytes_; }

  // On the default stream; waits for it.
  void fill(Precision elements) {
    launch_fill(memory_, bytes_, elements, 1);
    const cudaError_t error = cudaGetLastError();
    const cudaError_t ended = error == cudaSuccess ? cudaDeviceSynchronize() : error;
    if (ended == cudaSuccess) return;
    cudaFree(std::exchange(memory_, nullptr));
    require(ended, "filling memory");
  }

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
    // Touched, so that it is there; pinned memory is.
    if (!pinned)
      for (std::size_t at = 0; at < bytes; at += page) static_cast<std::byte*>(memory_)[at] = std::byte{0x3f};
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { pinned_ ? static_cast<void>(cudaFreeHost(memory_)) : std::free(memory_); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  static constexpr std::size_t page = 4096;

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
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace spillway::hwprofiles
