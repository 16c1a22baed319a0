// Errors of the CUDA runtime and of cuBLASLt as InputError: what went wrong, and what a user can do about it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>

#include "base/input_error.h"

namespace spillway::hwprofiles {

inline std::string cuda_remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "install a driver for CUDA " + std::to_string(CUDART_VERSION / 1000) + " or later";
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
      return "run on a machine with an NVIDIA GPU and its driver";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      return "build for this GPU: meson configure -Dgpu_architectures=...";
    case cudaErrorMemoryAllocation:
      return "free memory of the device: another program holds it";
    case cudaErrorDevicesUnavailable:
      return "another program has the device for itself: end it, or see nvidia-smi -c for the compute mode";
    case cudaErrorSystemNotReady:
      return "start the fabric manager (nvidia-fabricmanager), which this machine's GPUs wait for";
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorUnknown:
      return "the device is lost to this process: see dmesg for NVRM and Xid, reset the GPU or start the machine anew; "
             "nothing was written";
    default:
      return "see dmesg for messages of the driver (NVRM, Xid)";
  }
}

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw InputError("GPU", what, cudaGetErrorString(error), cuda_remedy(error));
}

inline void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw InputError("GPU", what, cublasLtGetStatusString(status), "check that cuBLAS fits the driver");
}

}  // namespace spillway::hwprofiles
