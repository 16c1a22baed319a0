// The trainer's CUDA back end as it is, over the virtual GPU (tests/virtual_gpu).
#include <gtest/gtest.h>

#include <cstdlib>

#include "hwprofiles/profile_library.h"
#include "tests/virtual_gpu/virtual_gpu.h"
#include "validation/trainer/cuda_backend.h"
#include "validation/trainer/kernel_cases.h"

namespace spillway::validation {
namespace {

// Every technique on streams and events: bits of plain training, the plan's order, each transfer whole.
TEST(VirtualCuda, TrainsUnderEveryTechnique) {
  setenv("SPILLWAY_CUDA_MODULE", SPILLWAY_VIRTUAL_GPU, 1);
  virtual_gpu::Constants constants;
  constants.computes = true;
  virtual_gpu::power_on(constants);
  {
    const std::unique_ptr<Backend> backend = load_cuda_backend();
    EXPECT_EQ(backend->device(), constants.name);
    const HardwareProfile hardware =
        ProfileLibrary({std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/hwprofiles/data"})
            .load_system("ssdtrain-testbed");
    std::vector<KernelCase> cases = cpu_kernel_cases();
    std::erase_if(cases, [&](const KernelCase& one) { return one.model != cpu_kernel_cases().front().model; });
    KernelCaseOptions options;
    options.hardware = &hardware;
    options.file = testing::TempDir() + "/virtual-cuda-drive";
    const std::vector<KernelOutcome> outcomes = run_kernel_cases(*backend, cases, options, {});
    std::size_t sound = 0;
    for (const KernelOutcome& outcome : outcomes) {
      SCOPED_TRACE(outcome.run.technique);
      if (!outcome.skipped.empty()) continue;  // drives without io_uring
      EXPECT_TRUE(outcome.sound());
      ++sound;
    }
    EXPECT_GE(sound, 5U);
  }
  EXPECT_GT(virtual_gpu::calls().at("cublasLtMatmul"), 100U);
  EXPECT_GT(virtual_gpu::calls().at("cudaMemcpyAsync"), 10U);
  unsetenv("SPILLWAY_CUDA_MODULE");
}

}  // namespace
}  // namespace spillway::validation
