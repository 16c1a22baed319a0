#include "studies/recorded/operator_kinds.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

std::optional<ScaledOperator> kind_of(std::string_view kernel, std::string_view launcher, Phase phase,
                                      OpKind kind = OpKind::kernel, bool odd_rows_are_apart = false) {
  Trace trace;
  const LaneId stream = trace.lane({.kind = LaneKind::stream, .device = 0});
  SpanId span = SpanId::none;
  if (!launcher.empty()) {
    trace.spans.name.push_back(trace.strings.intern(launcher));
    span = SpanId(0);
  }
  const OpId op = trace.append_op(
      {.name = trace.strings.intern(kernel), .kind = kind, .phase = phase, .lane = stream, .span = span});
  return recorded_kind(trace, op, odd_rows_are_apart);
}

// Names as PyTorch 2.x, cuBLAS, cuDNN, FlashAttention and rocBLAS give them.
TEST(RecordedKind, IsToldByKernelOperatorAndPhase) {
  using enum ScaledOperator;
  const auto forward = Phase::forward, backward = Phase::backward;
  EXPECT_EQ(kind_of("nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_TNT", "aten::mm", backward), product);
  EXPECT_EQ(kind_of("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x64_tn_align8>", "", forward),
            product);
  EXPECT_EQ(kind_of("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", "", forward), product);
  EXPECT_EQ(kind_of("unknown_kernel", "aten::addmm", forward), product);
  const char* odd = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>";
  EXPECT_EQ(kind_of(odd, "aten::mm", forward), product);
  EXPECT_EQ(kind_of(odd, "aten::mm", forward, OpKind::kernel, true), std::nullopt);
  EXPECT_EQ(kind_of("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "", forward), attention_forward);
  EXPECT_EQ(kind_of("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", "", backward), attention_backward);
  EXPECT_EQ(kind_of("void cudnn::fusion::compute_dot_do_o_specialized<true, 64>", "", backward), attention_backward);
  // Made again in a backward, it is a forward.
  EXPECT_EQ(kind_of("void pytorch_flash::flash_fwd_kernel<...>", "", backward), attention_forward);
  EXPECT_EQ(kind_of("fmha_cutlassB_bf16_aligned_64x64_k64_sm80", "aten::_efficient_attention_backward", backward),
            attention_backward);
  EXPECT_EQ(kind_of("void at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>", "", forward), norm_forward);
  EXPECT_EQ(kind_of("void GammaBetaBackwardCUDAKernelTemplate<...>", "aten::native_layer_norm_backward", backward),
            norm_backward);
  EXPECT_EQ(kind_of("void cunn_SoftMaxForward<4, float>", "aten::_log_softmax", forward), cross_entropy);
  EXPECT_EQ(kind_of("void multi_tensor_apply_kernel<...>", "aten::_fused_adamw_", Phase::optimizer), optimizer);
  EXPECT_EQ(kind_of("void vectorized_elementwise_kernel<8, CUDAFunctor_add>", "aten::add", forward), memory_bound);
  // A gradient's norm is no normalisation.
  EXPECT_EQ(kind_of("void reduce_kernel<512, 1, NormTwoOps>", "aten::linalg_vector_norm", Phase::unknown),
            memory_bound);
  EXPECT_EQ(kind_of("ncclDevKernel_AllReduce", "", backward, OpKind::collective), std::nullopt);
  EXPECT_EQ(kind_of("Memcpy DtoD", "", forward, OpKind::copy_device_to_device), std::nullopt);
}

Scenario small_step(const std::string& more) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-sxm5-80gb"},
                           "model": {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 4, )" +
                            more + "}}",
                        "small", "");
}

// Prices say of each kernel what its name would.
TEST(GeneratedKinds, ArePricesOwn) {
  for (const char* more : {R"("precision": "bf16", "optimizer_form": "fused")",
                           R"("precision": "bf16_mixed", "optimizer_form": "foreach")"}) {
    const Scenario scenario = small_step(more);
    const ModelSpec model = find_model(scenario.model);
    const HardwareProfile hardware = hardware_of(scenario);
    const auto step = [&](const GpuProfile& gpu) {
      HardwareProfile other = hardware;
      other.gpu = gpu;
      return generated_step(scenario, model, ScenarioMachine(other));
    };
    const Trace trace = step(hardware.gpu);
    const KernelKinds kinds = generated_kinds(trace, step, hardware.gpu, scenario.training.precision);
    std::map<std::string, std::set<std::optional<ScaledOperator>>, std::less<>> of;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      of[std::string(trace.strings.text(trace.ops.name[i]))].insert(kinds[i]);
    using Kinds = std::set<std::optional<ScaledOperator>>;
    // Products over the odd vocabulary have fixed rates.
    for (const char* product : {"gemm", "gemm_dgrad", "gemm_wgrad"})
      EXPECT_EQ(of.at(product), (Kinds{std::nullopt, ScaledOperator::product})) << product;
    EXPECT_EQ(of.at("flash_attention"), Kinds{ScaledOperator::attention_forward});
    EXPECT_EQ(of.at("flash_attention_backward"), Kinds{ScaledOperator::attention_backward});
    EXPECT_EQ(of.at("layer_norm"), Kinds{ScaledOperator::norm_forward});
    EXPECT_EQ(of.at("layer_norm_backward"), Kinds{ScaledOperator::norm_backward});
    EXPECT_EQ(of.at("dropout"), Kinds{ScaledOperator::memory_bound});
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool is_kernel = trace.ops.kind[i] == OpKind::kernel;
      if (!is_kernel) {
        EXPECT_EQ(kinds[i], std::nullopt);
      } else if (trace.ops.phase[i] == Phase::optimizer) {
        EXPECT_EQ(kinds[i], ScaledOperator::optimizer) << trace.strings.text(trace.ops.name[i]);
      }
    }
  }
}

}  // namespace
}  // namespace spillway::studies
