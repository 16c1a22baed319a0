#include "sim/replay/relative_speed.h"

#include <gtest/gtest.h>

namespace spillway::sim {
namespace {

TEST(ComputeKernels, AreToldByTheirNames) {
  for (const char* name :
       {"ampere_bf16_s16816gemm_bf16_128x64", "sm90_xmma_GEMM_f16f16", "Cijk_Ailk_Bljk_HHS_BH",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA",
        "_ZN7cutlass6KernelE", "conv", "triton_mm_", "cudnn_infer_volta_scudnn_winograd_128"})
    EXPECT_TRUE(is_compute_kernel_name(name)) << name;
  for (const char* name : {"", "ge", "gem", "vectorized_elementwise_kernel", "cij", "softmax_warp_forward",
                           "multi_tensor_apply_kernel", "CUDAFunctor_add", "_mm"})
    EXPECT_FALSE(is_compute_kernel_name(name)) << name;
}

// Fragments that overlap, and one at the very end.
TEST(ComputeKernels, AreFoundWhereverTheyStand) {
  for (const char* name : {"fflash", "gegemm", "xmxmma", "fmfmha", "kernel_sdpa", "CONCONV"})
    EXPECT_TRUE(is_compute_kernel_name(name)) << name;
}

}  // namespace
}  // namespace spillway::sim
