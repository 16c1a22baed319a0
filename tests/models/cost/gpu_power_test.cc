#include "models/cost/gpu_power.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/splitmix64.h"
#include "hwprofiles/profile_library.h"
#include "models/cost/cost_model.h"

namespace spillway::models {
namespace {

const GpuPower four_hundred = {.idle_watts = 100, .limit_watts = 400, .voltage_slope = 1};

// 100 + 600 x^3 = 400 at x = 0.5^(1/3).
TEST(GpuPower, BackToBackProductsGoWithTheCubeRoot) {
  EXPECT_NEAR(product_clock(four_hundred, 600), std::cbrt(0.5), 1e-9);
  EXPECT_NEAR(full_product_watts(four_hundred, std::cbrt(0.5)), 600, 1e-6);
  EXPECT_EQ(product_clock(four_hundred, 300), 1);
  const PowerLoad products{.chip_joules = 1200, .clocked_seconds = 2};
  EXPECT_NEAR(settled_clock(four_hundred, products, 1), std::cbrt(0.5), 1e-9);
}

// Waiting leaves power for the rest; a host that sets the pace does too. A locked clock is never exceeded.
TEST(GpuPower, IdleTimeRaisesTheClock) {
  const PowerLoad busy{.chip_joules = 600, .clocked_seconds = 1};
  PowerLoad waiting = busy, hosted = busy;
  waiting.other_seconds = 0.3;
  hosted.least_seconds = 1.5;
  const double clock = settled_clock(four_hundred, busy, 1);
  EXPECT_GT(settled_clock(four_hundred, waiting, 1), clock + 0.05);
  EXPECT_GT(settled_clock(four_hundred, hosted, 1), clock + 0.05);
  EXPECT_EQ(settled_clock(four_hundred, busy, 0.6), 0.6);
}

// What settles draws just the limit, at whatever mix; a lower limit never means a higher clock.
TEST(GpuPower, SettlesAtTheLimit) {
  SplitMix64 random(7);
  const auto share = [&] { return static_cast<double>(random.next() >> 11U) * 0x1p-53; };
  for (int i = 0; i < 200; ++i) {
    GpuPower power{.idle_watts = 50 + 100 * share(), .limit_watts = 300 + 400 * share(), .voltage_slope = share()};
    const PowerLoad load{.chip_joules = 100 + 900 * share(),
                         .memory_joules = 50 * share(),
                         .clocked_seconds = 0.2 + 0.8 * share(),
                         .other_seconds = 0.5 * share()};
    const double clock = settled_clock(power, load, 1);
    if (clock < 1 && clock > 1.01 * least_clock_share) {
      EXPECT_NEAR(watts(power, load, clock), power.limit_watts, 1e-6);
    }
    if (clock == 1) {
      EXPECT_LE(watts(power, load, 1), power.limit_watts);
    }
    power.limit_watts *= 0.8;
    EXPECT_LE(settled_clock(power, load, 1), clock);
  }
}

HardwareProfile machine(const char* gpu) {
  HardwareProfile profile = ProfileLibrary::standard().load_system("dgx-h100");
  profile.gpu = ProfileLibrary::standard().load_gpu(gpu);
  return profile;
}

KernelCost long_product(std::int64_t side = 8192) {
  return {.kind = KernelClass::gemm,
          .gemm = {side, side, side},
          .flops = Flops(2 * side * side * side),
          .bytes = Bytes(6 * side * side)};
}

// Of products back to back, by the model's own sums.
double settled_tflops(const HardwareProfile& profile, const KernelCost& product = long_product()) {
  const CostModel cost(profile);
  const Duration one = cost.duration(product);
  const double clocked = to_seconds(one.clocked), other = to_seconds(one.time - one.clocked);
  const double clock = settled_clock(*cost.power(),
                                     {.chip_joules = one.chip_joules,
                                      .memory_joules = one.memory_joules,
                                      .clocked_seconds = clocked,
                                      .other_seconds = other},
                                     1);
  return static_cast<double>(product.flops.count()) / (other + clocked / clock) / 1e12;
}

// A GPU at its datasheet's limit settles where its fit does (docs/internals/operator-times.md), within what bytes add.
TEST(GpuPower, MeasuredGpusSettleAsFitted) {
  for (const auto& [gpu, throttle] : {std::pair{"a100-sxm4-80gb", 0.12101}, std::pair{"h100-sxm5-80gb", 0.2473},
                                      std::pair{"b200-sxm-180gb", 0.2742}}) {
    const HardwareProfile profile = machine(gpu);
    const Duration one = CostModel(profile).duration(long_product());
    const double highest = static_cast<double>(long_product().flops.count()) / to_seconds(one.time) / 1e12;
    EXPECT_NEAR(highest / settled_tflops(profile), 1 + throttle, 0.05) << gpu;
  }
}

// kernel-times' bars: an H100 of 500 W between 0.70 and 0.90 of one of 700, a B200 of 750 between 0.78 and 0.90 of one
// of 1,000; less power never means more speed.
TEST(GpuPower, AProfilesLimitCounts) {
  const auto at = [](const char* gpu, double watts) {
    HardwareProfile profile = machine(gpu);
    profile.gpu.power_limit_watts = Sourced<double>{watts, {}};
    return settled_tflops(profile);
  };
  const double h100 = at("h100-sxm5-80gb", 500) / at("h100-sxm5-80gb", 700);
  EXPECT_GT(h100, 0.70);
  EXPECT_LT(h100, 0.90);
  const double b200 = at("b200-sxm-180gb", 750) / at("b200-sxm-180gb", 1000);
  EXPECT_GT(b200, 0.78);
  EXPECT_LT(b200, 0.90);
  double last = 0;
  for (const double watts : {250.0, 350.0, 500.0, 600.0, 700.0}) {
    const double now = at("h100-sxm5-80gb", watts);
    EXPECT_GT(now, last) << watts;
    last = now;
  }
}

// Kin of one kind go both ways: GB300 with 1,400 W is faster than GB200 with 1,200, and both than B200 with 1,000.
TEST(GpuPower, KinGoBothWays) {
  const double b200 = settled_tflops(machine("b200-sxm-180gb")), gb200 = settled_tflops(machine("gb200-186gb")),
               gb300 = settled_tflops(machine("gb300-288gb"));
  EXPECT_GT(gb200, 1.05 * b200);
  EXPECT_GT(gb300, 1.05 * gb200);
  EXPECT_LT(gb300, 1.35 * gb200);
}

// The rate a site measured is the rate its long products run at, below and above what the datasheet's limit gives; it
// goes before a power limit.
TEST(GpuPower, ASustainedRateIsMet) {
  HardwareProfile profile = machine("b200-sxm-180gb");
  const double usual = settled_tflops(profile);
  for (const double tflops : {0.7 * usual, 0.9 * usual, 1.1 * usual}) {
    profile.gpu.sustained_flops_per_second = Sourced<double>{tflops * 1e12, {}};
    EXPECT_NEAR(settled_tflops(profile) / tflops, 1, 0.005);
    profile.gpu.power_limit_watts = Sourced<double>{400, {}};
    EXPECT_NEAR(settled_tflops(profile) / tflops, 1, 0.005);
  }
}

}  // namespace
}  // namespace spillway::models
