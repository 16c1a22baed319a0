#include "models/cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "hwprofiles/profile_library.h"
#include "tests/models/example_profile.h"

namespace spillway::models {
namespace {

KernelCost gemm(std::int64_t m, std::int64_t n, std::int64_t k, DataType type = DataType::bf16) {
  return {.kind = KernelClass::gemm,
          .type = type,
          .gemm = {m, n, k, 1},
          .flops = Flops(2 * m * n * k),
          .bytes = Bytes((m * k + k * n + m * n) * size_of(type))};
}

KernelCost attention(KernelClass kind, std::int64_t sequence, bool causal) {
  const std::int64_t products = kind == KernelClass::attention_forward ? 2 : 5;
  return {
      .kind = kind,
      .attention = {.batch = 1, .heads = 64, .kv_heads = 8, .sequence = sequence, .head_dim = 128, .causal = causal},
      .flops = Flops(products * 2 * 64 * sequence * sequence * 128 / (causal ? 2 : 1))};
}

double ms(const Duration& duration) { return to_seconds(duration.time) * 1e3; }

// Without curves or tables: max(flops / (0.8 peak), bytes / (0.75 bandwidth)) + 2 us.
TEST(CostModel, RooflineOfAnUnknownArchitecture) {
  const CostModel cost(example_profile());
  EXPECT_NEAR(to_seconds(cost.duration(gemm(4096, 4096, 4096)).time), 2 * std::pow(4096.0, 3) / 0.8e15 + 2e-6, 1e-11);
  EXPECT_NEAR(to_seconds(cost.duration(gemm(1, 4096, 4096)).time), 2 * (4096.0 * 4096 + 2 * 4096) / 2.25e12 + 2e-6,
              1e-11);
  EXPECT_NEAR(to_seconds(cost.duration(gemm(4096, 4096, 4096, DataType::fp32)).time),
              2 * std::pow(4096.0, 3) / 4e13 + 2e-6, 1e-11);
}

TEST(CostModel, MemoryBoundKernelsMoveTheirBytes) {
  const CostModel cost(example_profile());
  const Duration duration = cost.duration({.bytes = Bytes(2'400'000'000)});  // at 0.8 x 3 TB/s: 1 ms
  EXPECT_NEAR(ms(duration), 1.003, 1e-6);
  EXPECT_EQ(duration.source, CostSource::assumed);
}

// Over rows: at half of 3 TB/s, and no kernel of several in less than 2.5 us.
TEST(CostModel, KernelsOverRowsReachHalfTheBandwidth) {
  const CostModel cost(example_profile());
  KernelCost rows{.bytes = Bytes(1'500'000'000), .access = MemoryAccess::rows};
  EXPECT_NEAR(ms(cost.duration(rows)), 1, 1e-6);
  rows = {.bytes = Bytes(1000), .access = MemoryAccess::rows, .launches = 12};
  EXPECT_NEAR(ms(cost.duration(rows)), 0.030, 1e-6);
}

// Two kernels share what both together are measured to take, and a reduction over rows has a fixed part.
TEST(CostModel, KernelsThatShareAMeasuredTime) {
  const CostModel cost(example_profile());
  const KernelCost both{.bytes = Bytes(2'400'000'000)};
  KernelCost part{.bytes = Bytes(800'000'000), .whole = both.bytes, .share = 0.25};
  EXPECT_NEAR(ms(cost.duration(part)), 0.25 * ms(cost.duration(both)), 1e-6);
  part.share = 0.75;
  EXPECT_NEAR(ms(cost.duration(part)), 0.75 * ms(cost.duration(both)), 1e-6);
  KernelCost sum = both;
  sum.access = MemoryAccess::column_sum;
  EXPECT_NEAR(ms(cost.duration(sum)) - ms(cost.duration(both)), 0.010, 1e-6);
}

// What our H100 took for the head of GPT-2 (124M, 8 x 1,024 tokens), within 15 %: 50,257 words begin rows at odd
// multiples of 2 bytes. And for copies element by element.
TEST(CostModel, KernelsForOddRowsOnHopper) {
  const CostModel cost(ProfileLibrary::standard().load_system("dgx-h100"));
  KernelCost head = gemm(8192, 50257, 768);
  EXPECT_NEAR(ms(cost.duration(head)), 6.65, 0.4);
  head.gemm = {8192, 768, 50257, 1, GemmLayout::nn};
  EXPECT_NEAR(ms(cost.duration(head)), 4.52, 0.7);
  head.gemm = {50257, 768, 8192, 1, GemmLayout::nt};
  EXPECT_NEAR(ms(cost.duration(head)), 4.29, 0.7);
  EXPECT_LT(ms(cost.duration(gemm(8192, 50304, 768))), 1.2);
  const Bytes moved(2LL * 2 * 4092 * 128256);
  EXPECT_NEAR(ms(cost.duration({.bytes = moved, .access = MemoryAccess::strided})), 1.297, 0.2);
  EXPECT_LT(ms(cost.duration({.bytes = moved})), 0.8);
}

// A kind with a curve of its own: 0.5 x 3 TB/s at 1.5 GB is 1 ms; what is smaller than its first point takes as long.
TEST(CostModel, MemoryBoundKernelsTakeTheCurveOfTheirKind) {
  HardwareProfile profile = example_profile();
  profile.gpu.kernel_efficiency.push_back(
      {KernelKind::optimizer, Curve({{3e6, 0.1}, {1.5e9, 0.5}}, Curve::Scale::log), {OriginKind::measured, "", "", 0}});
  const CostModel cost(profile);
  const Duration large = cost.duration({.bytes = Bytes(1'500'000'000), .memory = MemoryKind::optimizer});
  EXPECT_NEAR(ms(large), 1, 1e-6);
  EXPECT_EQ(large.source, CostSource::table);
  EXPECT_NEAR(ms(cost.duration({.bytes = Bytes(3'000'000), .memory = MemoryKind::optimizer})), 0.01, 1e-6);
  EXPECT_NEAR(ms(cost.duration({.bytes = Bytes(1'000), .memory = MemoryKind::optimizer})), 0.01, 1e-6);
  EXPECT_EQ(cost.duration({.bytes = Bytes(1'000)}).source, CostSource::assumed);  // another kind
}

TEST(CostModel, CopiesRunAtThePcieRate) {
  const CostModel cost(example_profile());
  const double rate = to_bytes_per_second(pcie_raw_rate(5, 16)) * 0.85;
  EXPECT_NEAR(to_seconds(cost.duration({.kind = KernelClass::copy_to_device, .bytes = Bytes(1 << 30)}).time),
              (1 << 30) / rate + 5e-6, 1e-9);
}

TEST(CostModel, AMeasuredTableGoesBeforeTheKinAFittedOneAfter) {
  HardwareProfile profile = example_profile();
  profile.gpu.architecture = "Hopper";
  const Duration by_curve = CostModel(profile).duration(gemm(4096, 4096, 4096));
  EXPECT_EQ(by_curve.source, CostSource::kin);
  GemmEfficiency table{.precision = Precision::bf16, .curve = Curve({{1, 0.25}}, Curve::Scale::log)};
  table.origin.provenance = OriginKind::fitted;
  profile.gpu.gemm_efficiency = {table};
  EXPECT_EQ(CostModel(profile).duration(gemm(4096, 4096, 4096)).time, by_curve.time);
  profile.gpu.gemm_efficiency[0].origin.provenance = OriginKind::measured;
  const Duration by_table = CostModel(profile).duration(gemm(4096, 4096, 4096));
  EXPECT_EQ(by_table.source, CostSource::table);
  EXPECT_NEAR(to_seconds(by_table.time), 2 * std::pow(4096.0, 3) / 0.25e15, 1e-11);
}

// The same kernel twice gives the same answer, and fp16 runs as bf16 does.
TEST(CostModel, HalfPrecisionRunsAsBf16) {
  HardwareProfile profile = example_profile();
  profile.gpu.architecture = "Hopper";
  const CostModel cost(profile);
  for (const std::int64_t m : {1, 100, 4096})
    EXPECT_EQ(cost.duration(gemm(m, 4096, 4096)).time, cost.duration(gemm(m, 4096, 4096, DataType::fp16)).time);
}

// Teraflops a second of attention with 16k tokens and 2,048 units of heads, as the published figures have it.
double attention_tflops(const CostModel& cost, KernelClass kind, AttentionKernel which, std::int64_t head_dim) {
  const std::int64_t heads = 2048 / head_dim, sequence = 16'384;
  const AttentionShape shape{.batch = 1,
                             .heads = heads,
                             .kv_heads = heads,
                             .sequence = sequence,
                             .head_dim = head_dim,
                             .causal = false,
                             .kernel = which};
  const double products = kind == KernelClass::attention_forward ? 2 : 5;
  const double flops = products * 2 * 2048.0 * 16'384.0 * 16'384.0;
  return flops / to_seconds(cost.duration({.kind = kind, .attention = shape}).time) / 1e12;
}

// Shah et al. 2024, figures 5 and 6: FlashAttention 2 on H100, 16k, no mask: 370 and 324 forwards, 322 and 291
// backwards. Dao 2023, figure 5, on A100: about 225
// forwards with heads of 128.
TEST(CostModel, FlashAttention2AsPublished) {
  const CostModel h100(ProfileLibrary::standard().load_system("dgx-h100"));
  const auto forward = KernelClass::attention_forward, backward = KernelClass::attention_backward;
  EXPECT_NEAR(attention_tflops(h100, forward, AttentionKernel::flash2, 128) / 370, 1, 0.03);
  EXPECT_NEAR(attention_tflops(h100, forward, AttentionKernel::flash2, 64) / 324, 1, 0.03);
  EXPECT_NEAR(attention_tflops(h100, backward, AttentionKernel::flash2, 128) / 322, 1, 0.03);
  EXPECT_NEAR(attention_tflops(h100, backward, AttentionKernel::flash2, 64) / 291, 1, 0.06);
  const CostModel a100(ProfileLibrary::standard().load_system("dgx-a100"));
  EXPECT_NEAR(attention_tflops(a100, forward, AttentionKernel::flash2, 128) / 225, 1, 0.07);
  // The first FlashAttention in Triton: 1.4 and 2 times as long.
  for (const CostModel* cost : {&h100, &a100}) {
    EXPECT_NEAR(attention_tflops(*cost, forward, AttentionKernel::flash2, 128) /
                    attention_tflops(*cost, forward, AttentionKernel::triton, 128),
                1.4, 0.02);
    EXPECT_NEAR(attention_tflops(*cost, backward, AttentionKernel::flash2, 128) /
                    attention_tflops(*cost, backward, AttentionKernel::triton, 128),
                2, 0.02);
  }
}

// H200's tensor peak is 132 multiprocessors x 4,096 flops x 1,830 MHz: at 1,500 MHz attention and products take 1.22
// times as long as at the highest clock, which power may not allow either. Memory-bound kernels do not change.
TEST(CostModel, LockedClockSlowsTensorUnits) {
  HardwareProfile profile = ProfileLibrary::standard().load_system("dgx-h200");
  const CostModel boost(profile);
  profile.gpu.locked_clock_mhz = Sourced<double>{1500, {}};
  const CostModel locked(profile);
  const KernelCost core = attention(KernelClass::attention_forward, 16'384, true), product = gemm(16'384, 8192, 8192),
                   copy{.bytes = Bytes(1 << 30)};
  const auto ratio = [&](const KernelCost& kernel) { return ms(locked.duration(kernel)) / ms(boost.duration(kernel)); };
  EXPECT_NEAR(ratio(core), 1830.0 / 1500, 0.01);
  EXPECT_NEAR(ratio(product), 1830.0 / 1500, 0.01);
  EXPECT_EQ(ratio(copy), 1);
  profile.gpu.locked_clock_mhz = Sourced<double>{3000, {}};
  EXPECT_EQ(CostModel(profile).duration(product).time, boost.duration(product).time);
}

// One more row than fills the tiles costs at least as much, up to the noise in the tables of residuals.
TEST(CostModel, TimeDoesNotFallWithSize) {
  HardwareProfile profile = example_profile();
  for (const char* architecture : {"Ampere", "Hopper", "Blackwell", "Ada"}) {
    profile.gpu.architecture = architecture;
    const CostModel cost(profile);
    Picos last{};
    for (std::int64_t m = 64; m <= 16'384; m += 320) {
      const Picos time = cost.duration(gemm(m, 4096, 4096)).time;
      EXPECT_GE(time.count(), last.count() * 95 / 100) << architecture << " " << m;
      last = std::max(last, time);
    }
  }
}

// A table in the profile that is only fitted does not count; a GPU nobody measured says that it follows its kin.
TEST(CostModel, SaysWhereADurationComesFrom) {
  const auto source = [](const char* gpu, const KernelCost& kernel) {
    HardwareProfile profile = example_profile();
    profile.gpu = ProfileLibrary::standard().load_gpu(gpu);
    return CostModel(profile).duration(kernel);
  };
  const KernelCost inside = gemm(4096, 4096, 4096), outside = gemm(4096, 200'000, 4096);
  EXPECT_EQ(source("h100-sxm5-80gb", inside).source, CostSource::table);
  EXPECT_EQ(source("h100-sxm5-80gb", outside).source, CostSource::fitted);
  EXPECT_EQ(source("h100-pcie-80gb", inside).source, CostSource::kin);
  EXPECT_EQ(source("rtx-4090", inside).source, CostSource::kin);
  EXPECT_EQ(source("h100-sxm5-80gb", gemm(4096, 4096, 4096, DataType::fp32)).source, CostSource::assumed);
  EXPECT_GT(source("h100-sxm5-80gb", inside).relative_error, 0.01);
  EXPECT_LT(source("h100-sxm5-80gb", inside).relative_error, 0.06);
  EXPECT_GT(source("rtx-4090", inside).relative_error, 0.12);
}

double tflops(const CostModel& cost, const KernelCost& kernel) {
  return static_cast<double>(kernel.flops.count()) / to_seconds(cost.duration(kernel).time) / 1e12;
}

// Our H100: 51.2 TFLOP/s of 67 at best, with 128 lanes a multiprocessor; an A100, with 64, comes nearer to its 19.5.
// Odd sides cost nothing.
TEST(CostModel, VectorUnitsOfWideMultiprocessorsShareTheirIssueSlots) {
  const auto rate = [](const char* gpu, std::int64_t n) {
    HardwareProfile profile = example_profile();
    profile.gpu = ProfileLibrary::standard().load_gpu(gpu);
    return tflops(CostModel(profile), gemm(8192, n, 8192, DataType::fp32));
  };
  EXPECT_NEAR(rate("h100-sxm5-80gb", 8192), 51.2, 2);
  EXPECT_NEAR(rate("a100-sxm4-80gb", 8192), 0.93 * 19.5, 0.5);
  EXPECT_NEAR(rate("h100-sxm5-80gb", 8191), rate("h100-sxm5-80gb", 8192), 1);
}

// GAC (github.com/JihaoXin/GAC), A100, 8192 x 8192 x k: 68 to 77 TFLOP/s at k of 104 and 120, 61 to 71 at 108 and 116,
// 39 to 40 at 105 and 107; ml-engineering, H100, 16,384 x 4096 x n: 398 at n of 10,944, 273 at 10,922.
TEST(CostModel, MisalignedOperandsAreSlower) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("a100-sxm4-80gb");
  const CostModel a100(profile);
  const auto rate = [&](std::int64_t k) { return tflops(a100, gemm(8192, 8192, k)); };
  EXPECT_NEAR(rate(108) / rate(104), 0.91, 0.06);
  EXPECT_NEAR(rate(107) / rate(104), 0.55, 0.12);
  EXPECT_EQ(a100.duration(gemm(4095, 4096, 4096)).time, a100.duration(gemm(4095, 4096, 4096)).time);
  EXPECT_LT(ms(a100.duration(gemm(4095, 4096, 4096))), 1.02 * ms(a100.duration(gemm(4096, 4096, 4096))));  // m alone
  profile.gpu = ProfileLibrary::standard().load_gpu("h100-sxm5-80gb");
  const CostModel h100(profile);
  const double odd = ms(h100.duration(gemm(16'384, 4096, 10'922))),
               even = ms(h100.duration(gemm(16'384, 4096, 10'944)));
  EXPECT_GT(odd / even, 1.35);
}

// Heads of 108 before CUDA 12 and in bf16: half the vector unit's rate, 9.55 and 10.02 TFLOP/s on A100 by BigScience's
// logs (pairs of one model with other heads); later, or in fp16, the tensor unit takes them.
TEST(CostModel, OldLibrariesLeaveMisalignedBatchesToTheVectorUnit) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("a100-sxm4-80gb");
  const CostModel cost(profile);
  KernelCost scores{.kind = KernelClass::gemm,
                    .gemm = {2048, 2048, 108, 64},
                    .flops = Flops(std::int64_t{2} * 2048 * 2048 * 108 * 64),
                    .before_cuda_12 = true};
  EXPECT_NEAR(tflops(cost, scores), 9.8, 0.3);
  KernelCost later = scores, half = scores, aligned = scores;
  later.before_cuda_12 = false;
  half.type = DataType::fp16;
  aligned.gemm.k = 112;
  for (const KernelCost& one : {later, half, aligned}) EXPECT_GT(tflops(cost, one), 50);
}

// GAC, A100, 4 x 2048 tokens, 32 heads, forwards: widths of 104 to 120 take FlashAttention's kernel of 128, 1.47
// to 1.59 ms; 107 is copied first: 2.14 ms.
TEST(CostModel, HeadWidthsTakeTheNextKernel) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("a100-sxm4-80gb");
  const CostModel cost(profile);
  const auto took = [&](std::int64_t width) {
    const AttentionShape shape{
        .batch = 4, .heads = 32, .kv_heads = 32, .sequence = 2048, .head_dim = width, .causal = false};
    return ms(cost.duration({.kind = KernelClass::attention_forward, .attention = shape}));
  };
  EXPECT_EQ(took(104), took(128));
  EXPECT_NEAR(took(112) / 1.532, 1, 0.08);
  EXPECT_NEAR(took(107) / 2.139, 1, 0.08);
}

// A product for each expert is launched by itself: never less than 8.9 us each.
TEST(CostModel, OneByOneIsLaunchedOneByOne) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("b200-sxm-180gb");
  const CostModel cost(profile);
  KernelCost experts{.kind = KernelClass::gemm, .gemm = {154, 1536, 5120, 160}, .one_by_one = true};
  EXPECT_NEAR(ms(cost.duration(experts)), 160 * 8.9e-3, 0.02);
  experts.one_by_one = false;
  EXPECT_LT(ms(cost.duration(experts)), 160 * 8e-3);
}

// Older kernels of a library do so many flops a clock and multiprocessor, and never more than the others.
TEST(CostModel, OlderProductsAreBoundByTheirRate) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("h100-sxm5-80gb");
  const CostModel cost(profile);
  KernelCost product{.kind = KernelClass::gemm,
                     .gemm = {.m = 8192, .n = 8192, .k = 8192},
                     .flops = Flops(std::int64_t{2} * 8192 * 8192 * 8192)};
  const double best = ms(cost.duration(product));
  product.flops_per_clock = 850;
  const double older = ms(cost.duration(product));
  EXPECT_GT(older, 2 * best);
  product.flops_per_clock = 425;
  EXPECT_NEAR(ms(cost.duration(product)), 2 * older, 0.01 * older);
  product.flops_per_clock = 1e9;
  EXPECT_EQ(ms(cost.duration(product)), best);
}

// Grouped heads share keys and values: no more traffic, the same flops, so never slower.
TEST(CostModel, LatentAndGroupedAttention) {
  HardwareProfile profile = example_profile();
  profile.gpu = ProfileLibrary::standard().load_gpu("h200-sxm-141gb");
  const CostModel cost(profile);
  KernelCost kernel = attention(KernelClass::attention_forward, 4096, true);
  kernel.attention.kv_heads = 64;
  const Picos apart = cost.duration(kernel).time;
  kernel.attention.kv_heads = 8;
  const Picos grouped = cost.duration(kernel).time;
  EXPECT_LE(grouped, apart);
  kernel.attention.head_dim = 192;
  kernel.attention.value_dim = 128;
  EXPECT_GT(cost.duration(kernel).time, grouped);
}

}  // namespace
}  // namespace spillway::models
