#include "hwprofiles/calibrate/cuda_require.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::hwprofiles {
namespace {

using testing::HasSubstr;

std::string told(cudaError_t error) {
  try {
    require(error, "measuring");
  } catch (const InputError& failure) {
    return failure.what();
  }
  return "";
}

// One clear message for each way in which a GPU fails: what happened, and what to do.
TEST(CudaRequire, SaysWhatToDo) {
  EXPECT_EQ(told(cudaSuccess), "");
  EXPECT_THAT(told(cudaErrorInsufficientDriver), HasSubstr("install a driver for CUDA"));
  EXPECT_THAT(told(cudaErrorNoDevice), HasSubstr("NVIDIA GPU"));
  EXPECT_THAT(told(cudaErrorNoKernelImageForDevice), HasSubstr("gpu_architectures"));
  EXPECT_THAT(told(cudaErrorMemoryAllocation), HasSubstr("another program"));
  EXPECT_THAT(told(cudaErrorECCUncorrectable), HasSubstr("device is lost"));
  EXPECT_THAT(told(cudaErrorUnknown), HasSubstr("Xid"));
  EXPECT_THAT(told(cudaErrorDevicesUnavailable), HasSubstr("compute mode"));
  EXPECT_THAT(told(cudaErrorLaunchFailure), HasSubstr("dmesg"));
}

}  // namespace
}  // namespace spillway::hwprofiles
